// Command-line options that several programs have. Include this only where a program reads its
// options.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <rondo/options.hpp>
#include <string>
#include <vector>

namespace rondo::launch {

// An option whose values have names. (CLI11's own transformers also print the values behind the
// names in help texts and errors: those of enumerations as bytes that are no text.)
template <class Value>
CLI::Option* add_named_option(CLI::App& app, const std::string& option, Value& target,
                              const std::map<std::string, Value>& values,
                              const std::string& description) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  const auto take = [&target, values](const std::string& name) { target = values.at(name); };
  return app.add_option_function<std::string>(option, take, description)
      ->check(CLI::IsMember(names));
}

inline std::map<std::string, CarrierChoice> carrier_names() {
  return {{"auto", CarrierChoice::automatic},
          {"shm", CarrierChoice::shm},
          {"mpi", CarrierChoice::mpi},
          {"ucx", CarrierChoice::ucx}};
}

inline void add_rank_options(CLI::App& app, int& ranks, int& processes, int most) {
  app.add_option("--ranks", ranks, "ranks that are threads, without a launcher")
      ->check(CLI::Range(1, most));
  app.add_option("--processes", processes, "ranks that are forked processes, without a launcher")
      ->check(CLI::Range(1, most))
      ->excludes("--ranks");
}

}  // namespace rondo::launch

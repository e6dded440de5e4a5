// Checks of numbers for command lines. CLI11's own ones let "nan" through, take "-3" for a very
// large number of bytes, and name the largest double as the end of their range.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace rondo::launch {

// Of Value's kind: a whole number, or any.
template <class Value>
CLI::Validator number_between(Value least, Value most, const std::string& kind) {
  const auto check = [=](std::string& text) {
    Value value{};
    const bool fits = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
    return fits ? std::string()
                : "'" + text + "' is no " + kind + " from " + CLI::detail::to_string(least) +
                      " to " + CLI::detail::to_string(most);
  };
  return CLI::Validator(check, "");
}

inline CLI::Validator finite_between(double least, double most) {
  return number_between(least, most, "number");
}

inline CLI::Validator whole_from(std::int64_t least, std::int64_t most = 1'000'000'000) {
  return number_between(least, most, "whole number");
}

// An option for a number of bytes, such as 4096, 64KiB or 1MiB.
template <class Bytes>
CLI::Option* add_bytes_option(CLI::App& app, const std::string& name, Bytes& bytes,
                              const std::string& description) {
  return app.add_option(name, bytes, description)
      ->transform(CLI::AsSizeValue(false))
      ->transform(CLI::Validator(
          [](std::string& text) {
            return text.starts_with('-') ? "'" + text + "' is no number of bytes" : std::string();
          },
          ""));
}

}  // namespace rondo::launch

// A check for command lines: CLI11's own ones let "nan" through.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace rondo::launch {

inline CLI::Validator finite_between(double least, double most) {
  const auto check = [=](std::string& text) {
    double value = 0;
    const bool fits = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
    return fits ? std::string()
                : "'" + text + "' is no number from " + CLI::detail::to_string(least) + " to " +
                      CLI::detail::to_string(most);
  };
  return CLI::Validator(check, "");
}

}  // namespace rondo::launch

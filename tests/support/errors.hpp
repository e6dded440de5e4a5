// What an error says.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include <rondo/errors.hpp>

namespace rondo::test {

// Whether the error's text has `part`; if not, shows it.
inline bool says(const std::exception& error, const std::string& part) {
  const bool found = std::string_view(error.what()).find(part) != std::string_view::npos;
  if (!found) std::fprintf(stderr, "'%s' lacks '%s'\n", error.what(), part.c_str());
  return found;
}

// The text of the UsageError that `function` throws.
template <class Function>
std::string usage_error(Function&& function) {
  try {
    function();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no UsageError";
}

}  // namespace rondo::test

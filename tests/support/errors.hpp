// What an error says.
#pragma once

#include <string>

#include <rondo/errors.hpp>

namespace rondo::test {

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

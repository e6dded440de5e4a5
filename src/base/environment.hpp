// The only reader of the environment. README.md lists the variables.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <rondo/types.hpp>

namespace rondo::detail {

struct Environment {
  std::optional<std::chrono::milliseconds> timeout;  // RONDO_TIMEOUT, in seconds
  std::optional<Algorithm> algorithm;                // RONDO_ALGO
};

// Throws UsageError, naming the variable, when a value cannot be understood.
Environment read_environment();

// RONDO_LOG as it stands; read apart from the rest since logging must not throw.
std::optional<std::string> read_log_setting();

}  // namespace rondo::detail

// The only reader of the environment. README.md lists the variables.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include <rondo/types.hpp>

namespace rondo::detail {

// RONDO_TIMEOUT, in seconds, and RONDO_ALGO. Throw UsageError, naming the variable, when its value
// cannot be understood.
std::optional<std::chrono::milliseconds> environment_timeout();
std::optional<Algorithm> environment_algorithm();

// CUDA_DEVICE_MAX_CONNECTIONS, which CUDA reads when a program first uses a device; 8 unless set.
int environment_device_connections();

// The value of RONDO_TUNING, a file's path, not interpreted.
std::optional<std::string> environment_tuning();

// RONDO_ARENA_BYTES. Throws UsageError when its value is no number of bytes.
std::optional<std::size_t> environment_arena_bytes();

// Whether RONDO_SHORT_SLICES is not 0; read once.
bool environment_allows_short_slices();

// The values of RONDO_SECRET and RONDO_INTERFACE.
std::optional<std::string> environment_secret();
std::optional<std::string> environment_interface();

// The value of another program's variable, such as UCX's; nothing if it is unset or empty.
std::optional<std::string> environment_of_others(const char* name);

// The value of a launcher's variable, also if it is empty; nothing if it is unset.
std::optional<std::string> environment_of_launchers(const char* name);

// The value of RONDO_LOG, not interpreted.
std::optional<std::string> environment_log();

}  // namespace rondo::detail

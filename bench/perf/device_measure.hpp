// Times one collective on device memory, and checks its result.
#pragma once

#include <cstdint>
#include <optional>
#include <rondo/cuda.hpp>
#include <string>

#include "bench/perf/measure.hpp"

namespace rondo::perf {

// Collective: every rank of `comm` calls it and gets the same row; nothing where `algo` cannot make
// the call. Calls are captured in a graph and replayed; a time is that of one call, by the device's
// clock. "copy" is the device's own copy of the same number of bytes, by one rank at a time: the
// limit for the speed of a ring whose ranks share the device.
std::optional<Row> measure_on_device(cuda::Communicator& comm, const Options& options,
                                     const std::string& algo, std::uint64_t count);

}  // namespace rondo::perf

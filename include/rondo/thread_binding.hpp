/// \file
/// Where a thread for communication runs.
#pragma once

#include <optional>
#include <string>

#include <rondo/export.hpp>
#include <rondo/topology.hpp>

namespace rondo {

/// For a thread that serves communication beside threads that compute: asks the scheduler to run
/// the calling thread soon after it wakes, and binds it to hardware thread `core`, as numbered by
/// the operating system. Negative: does not bind it. Unset: binds it to the last core that rank
/// `rank` may use, where it disturbs computing threads on the first cores least; ranks that are not
/// bound share the cores of their host evenly, and a rank with one core keeps its binding. Returns
/// a readable text that says where the thread is then, and why. Throws UsageError for a core that
/// this process may not use.
RONDO_API std::string bind_beside_compute(const Topology& topology, int rank,
                                          std::optional<int> core = std::nullopt);

}  // namespace rondo

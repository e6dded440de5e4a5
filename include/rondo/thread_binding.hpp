/// \file
/// Where a thread for communication runs.
#pragma once

#include <optional>
#include <string>

#include <rondo/export.hpp>
#include <rondo/topology.hpp>

namespace rondo {

/// For a thread that serves communication beside threads that compute: asks the scheduler to run the caller
/// soon after it wakes, and binds it to hardware thread `core` as the operating system counts; to none where
/// that is negative; unset: to the last core of those that rank `rank` may use, where computing threads on the
/// first ones meet it least. Ranks of a host that are not bound share it evenly; a rank with one core stays as
/// it is. Returns where the thread is then and why, for people. Throws UsageError for a core that this process
/// may not use.
RONDO_API std::string bind_beside_compute(const Topology& topology, int rank,
                                          std::optional<int> core = std::nullopt);

}  // namespace rondo

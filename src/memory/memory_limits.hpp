// How much memory this process may still allocate: on its machine, and in each control group
// (cgroup, version 1 or 2) that it is in, the innermost as well as those around it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rondo::detail {

struct MemoryLimit {
  // The same for all processes, and only for those, that share the limit: the number of the group's
  // folder, which no other group of the machine has; for the machine as a whole, 0.
  std::uint64_t id = 0;
  // What can be allocated without swapping and without a process being killed for lack of memory.
  std::uint64_t room_bytes = 0;
};

// `root`: the folder with /proc and /sys; other than "" in tests.
std::vector<MemoryLimit> memory_limits(const std::string& root = {});

}  // namespace rondo::detail

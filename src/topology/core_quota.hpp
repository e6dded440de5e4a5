// How much of the machine's cores the control groups of this process let it use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rondo::detail {

// A group whose processes together may use the cores for so long in each period.
struct CoreQuota {
  // The same for all processes, and only for those, that are in the group: the number of its
  // folder.
  std::uint64_t group = 0;
  std::uint32_t millicores = 0;  // 1500: one core all the time, and a second one half of it
};

// Of all groups with a quota that this process is in, the narrowest; nothing if there is none.
// `root`: the folder with /proc and /sys; other than "" in tests.
std::optional<CoreQuota> core_quota(const std::string& root = {});

}  // namespace rondo::detail

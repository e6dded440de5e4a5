// The control groups (cgroup, version 1 and 2) that this process is in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo::detail {

struct ControlGroup {
  std::string folder;  // of the files by which the system shows it
  bool second_version = false;
};

// The groups that a controller ("memory", "cpu") may limit: those of version 2, then those of
// version 1; of each the innermost first, then those around it. `root`: the folder with /proc and
// /sys; other than "" in tests.
std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root = {});

}  // namespace rondo::detail

#include "base/control_groups.hpp"

#include <fstream>
#include <optional>
#include <sstream>

namespace rondo::detail {
namespace {

// Whether a list with commas has this word.
bool lists(const std::string& words, std::string_view word) {
  std::istringstream all(words);
  std::string one;
  while (std::getline(all, one, ',')) {
    if (one == word) return true;
  }
  return false;
}

// The folder where the control groups of one version are mounted, and which group is at the top
// there.
struct Mounted {
  std::string top;
  std::string point;
};

// Which groups are meant.
struct Kind {
  std::string_view controller;
  bool second_version = false;
};

// A line of /proc/self/mountinfo: "36 35 0:31 TOP POINT OPTIONS [TAGS] - TYPE SOURCE OPTIONS"
// (proc(5)).
std::optional<Mounted> mounted(const std::string& root, const Kind& kind) {
  std::ifstream file(root + "/proc/self/mountinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t separator = line.find(" - ");
    if (separator == std::string::npos) continue;
    std::istringstream before(line.substr(0, separator));
    std::istringstream after(line.substr(separator + 3));
    std::string skipped;
    std::string type;
    std::string options;
    Mounted found;
    before >> skipped >> skipped >> skipped >> found.top >> found.point;
    after >> type >> skipped >> options;
    const bool meant = kind.second_version ? type == "cgroup2"
                                           : type == "cgroup" && lists(options, kind.controller);
    if (meant) return found;
  }
  return std::nullopt;
}

// This process's control group, by its path from the top: "0::PATH" for version 2,
// "7:cpu,memory:PATH" for version 1.
std::optional<std::string> own_group(const std::string& root, const Kind& kind) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool meant =
        kind.second_version ? controllers.empty() : lists(controllers, kind.controller);
    if (meant) return line.substr(second + 1);
  }
  return std::nullopt;
}

void add_groups(std::vector<ControlGroup>& groups, const std::string& root, const Kind& kind) {
  const auto mount = mounted(root, kind);
  const auto group = own_group(root, kind);
  if (!mount || !group) return;
  std::string below = *group;  // of what is mounted
  const bool is_below = below.starts_with(mount->top) &&
                        (below.size() == mount->top.size() || below[mount->top.size()] == '/');
  if (mount->top != "/" && is_below) below.erase(0, mount->top.size());
  for (;;) {
    while (below.ends_with('/')) below.pop_back();
    groups.push_back({root + std::string(mount->point).append(below), kind.second_version});
    const std::size_t last = below.rfind('/');
    if (last == std::string::npos) return;
    below.erase(last);
  }
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root) {
  std::vector<ControlGroup> groups;
  add_groups(groups, root, {controller, true});
  add_groups(groups, root, {controller, false});
  return groups;
}

}  // namespace rondo::detail

#include "memory/memory_limits.hpp"

#include <sys/stat.h>

#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace rondo::detail {
namespace {

// The number that follows `key` in a file of /proc or of a control group; the file's first word if
// `key` is empty.
std::optional<std::uint64_t> number_in(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  while (!key.empty() && file >> word && word != key) {
  }
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // "max", or no such file
}

// The names that a version of control groups has for the same things.
struct Names {
  const char* most;
  const char* used;
  // The page cache counts as used, but the kernel frees it when memory is needed.
  const char* inactive_cache;
  const char* active_cache;
};
constexpr Names kFirst = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                          "total_active_file"};
constexpr Names kSecond = {"memory.max", "memory.current", "inactive_file", "active_file"};

std::optional<MemoryLimit> limit_of(const std::string& folder, const Names& names) {
  struct stat facts{};
  const auto most = number_in(folder + "/" + names.most, {});
  const auto used = number_in(folder + "/" + names.used, {});
  if (!most || !used || ::stat(folder.c_str(), &facts) != 0) return std::nullopt;
  const std::string stat = folder + "/memory.stat";
  const std::uint64_t cached = number_in(stat, names.inactive_cache).value_or(0) +
                               number_in(stat, names.active_cache).value_or(0);
  if (*most > std::numeric_limits<std::uint64_t>::max() - cached) return std::nullopt;
  return MemoryLimit{facts.st_ino, *most + cached > *used ? *most + cached - *used : 0};
}

// The folder where the control groups of one version are mounted, and which group is at the top
// there.
struct Mounted {
  std::string top;
  std::string point;
};

// A line of /proc/self/mountinfo: "36 35 0:31 TOP POINT OPTIONS [TAGS] - TYPE SOURCE OPTIONS"
// (proc(5)).
std::optional<Mounted> mounted(const std::string& root, bool second_version) {
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
    const bool memory = ("," + options + ",").find(",memory,") != std::string::npos;
    if (second_version ? type == "cgroup2" : type == "cgroup" && memory) return found;
  }
  return std::nullopt;
}

// This process's control group, by its path from the top: "0::PATH" for version 2,
// "7:cpu,memory:PATH" for version 1.
std::optional<std::string> own_group(const std::string& root, bool second_version) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool memory = ("," + controllers + ",").find(",memory,") != std::string::npos;
    if (second_version ? controllers.empty() : memory) return line.substr(second + 1);
  }
  return std::nullopt;
}

void add_groups(std::vector<MemoryLimit>& limits, const std::string& root, bool second_version) {
  const auto mount = mounted(root, second_version);
  const auto group = own_group(root, second_version);
  if (!mount || !group) return;
  std::string below = *group;  // of what is mounted
  const bool is_below = below.starts_with(mount->top) &&
                        (below.size() == mount->top.size() || below[mount->top.size()] == '/');
  if (mount->top != "/" && is_below) below.erase(0, mount->top.size());
  for (;;) {
    while (below.ends_with('/')) below.pop_back();
    const auto limit =
        limit_of(root + std::string(mount->point).append(below), second_version ? kSecond : kFirst);
    if (limit) limits.push_back(*limit);
    const std::size_t last = below.rfind('/');
    if (last == std::string::npos) return;
    below.erase(last);
  }
}

}  // namespace

std::vector<MemoryLimit> memory_limits(const std::string& root) {
  std::vector<MemoryLimit> limits;
  if (const auto kib = number_in(root + "/proc/meminfo", "MemAvailable:")) {
    limits.push_back({0, *kib * 1024});
  }
  add_groups(limits, root, true);
  add_groups(limits, root, false);
  return limits;
}

}  // namespace rondo::detail

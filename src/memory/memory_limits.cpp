#include "memory/memory_limits.hpp"

#include <sys/stat.h>

#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include "base/control_groups.hpp"

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

}  // namespace

std::vector<MemoryLimit> memory_limits(const std::string& root) {
  std::vector<MemoryLimit> limits;
  if (const auto kib = number_in(root + "/proc/meminfo", "MemAvailable:")) {
    limits.push_back({0, *kib * 1024});
  }
  for (const ControlGroup& group : control_groups("memory", root)) {
    const auto limit = limit_of(group.folder, group.second_version ? kSecond : kFirst);
    if (limit) limits.push_back(*limit);
  }
  return limits;
}

}  // namespace rondo::detail

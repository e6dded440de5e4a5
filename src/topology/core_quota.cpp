#include "topology/core_quota.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "base/control_groups.hpp"

namespace rondo::detail {
namespace {

struct Share {
  std::int64_t quota_us = -1;
  std::int64_t period_us = 0;
};

// Version 2 shows both in one file, and "max" where there is no quota; version 1 shows -1 there.
Share share_of(const ControlGroup& group) {
  Share share;
  if (group.second_version) {
    std::ifstream file(group.folder + "/cpu.max");
    file >> share.quota_us >> share.period_us;
    return file ? share : Share();
  }
  std::ifstream(group.folder + "/cpu.cfs_quota_us") >> share.quota_us;
  std::ifstream(group.folder + "/cpu.cfs_period_us") >> share.period_us;
  return share;
}

}  // namespace

std::optional<CoreQuota> core_quota(const std::string& root) {
  std::optional<CoreQuota> narrowest;
  for (const ControlGroup& group : control_groups("cpu", root)) {
    const Share share = share_of(group);
    struct stat facts{};
    if (share.quota_us <= 0 || share.period_us <= 0) continue;
    if (::stat(group.folder.c_str(), &facts) != 0) continue;
    constexpr std::int64_t kMost = 1'000'000'000;
    const auto millicores = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(share.quota_us * 1000 / share.period_us, 1, kMost));
    if (!narrowest || millicores < narrowest->millicores) {
      narrowest = CoreQuota{facts.st_ino, millicores};
    }
  }
  return narrowest;
}

}  // namespace rondo::detail

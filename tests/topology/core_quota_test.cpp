// How many cores control groups allow, read from copies of what Linux shows in /proc and /sys.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "joining/rank_facts.hpp"
#include "topology/core_quota.hpp"

namespace rondo::detail {
namespace {

class CoreQuotas : public testing::Test {
 protected:
  CoreQuotas() {
    std::string folder = "/tmp/rondo-quota-XXXXXX";
    root_ = ::mkdtemp(folder.data());
  }
  ~CoreQuotas() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + file).parent_path());
    std::ofstream(root_ + file) << text;
  }
  // 0: there is no quota.
  [[nodiscard]] unsigned millicores() const {
    const auto quota = core_quota(root_);
    return quota ? quota->millicores : 0;
  }

  std::string root_;
};

TEST_F(CoreQuotas, AreTheNarrowestOfNestedGroupsOfVersion2) {
  EXPECT_EQ(millicores(), 0U) << "nothing is mounted";
  write("/proc/self/cgroup", "0::/outer/inner\n");
  write("/proc/self/mountinfo",
        "36 24 0:31 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  write("/sys/fs/cgroup/outer/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(millicores(), 0U);
  write("/sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  EXPECT_EQ(millicores(), 1500U);
  const auto outer = core_quota(root_)->group;
  write("/sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n");
  EXPECT_EQ(core_quota(root_)->group, outer) << "is narrower";
  write("/sys/fs/cgroup/outer/inner/cpu.max", "50000 50000\n");
  EXPECT_EQ(millicores(), 1000U);
  EXPECT_NE(core_quota(root_)->group, outer);
}

TEST_F(CoreQuotas, OfVersion1AreFoundBesideOtherControllers) {
  write("/proc/self/cgroup", "12:memory:/a\n5:cpu,cpuacct:/docker/abc\n");
  write("/proc/self/mountinfo",
        "36 24 0:31 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "37 24 0:32 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(millicores(), 0U);
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "25000\n");
  EXPECT_EQ(millicores(), 250U);
}

RankFacts facts(std::uint64_t group, std::uint32_t millicores) {
  RankFacts facts;
  facts.cores[0] = 0xFF;  // eight cores
  facts.core_quota = {group, millicores};
  return facts;
}

TEST(RanksShortOfQuota, AreMoreThanTheirControlGroupHasCores) {
  EXPECT_FALSE(short_of_quota({facts(0, 0), facts(0, 0), facts(0, 0)}));
  EXPECT_FALSE(short_of_quota({facts(7, 2000), facts(7, 2000)}));
  EXPECT_TRUE(short_of_quota({facts(7, 1999), facts(7, 1999)}));
  EXPECT_FALSE(short_of_quota({facts(7, 1000), facts(8, 1000)}))
      << "each in a container of its own";
  EXPECT_TRUE(short_of_quota({facts(0, 0), facts(8, 500)}));
}

}  // namespace
}  // namespace rondo::detail

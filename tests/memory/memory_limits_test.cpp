// How much memory is left by each limit, read from copies of what Linux shows in /proc and /sys.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "memory/memory_limits.hpp"

namespace rondo::detail {
namespace {

class MemoryLimits : public testing::Test {
 protected:
  MemoryLimits() {
    std::string folder = "/tmp/rondo-limits-XXXXXX";
    root_ = ::mkdtemp(folder.data());
    write("/proc/meminfo", "MemTotal:  9000 kB\nMemFree: 10 kB\nMemAvailable:    8000 kB\n");
  }
  ~MemoryLimits() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + file).parent_path());
    std::ofstream(root_ + file) << text;
  }
  void limit(const std::string& group, std::uint64_t most, std::uint64_t used) const {
    write(group + "/memory.max", std::to_string(most) + "\n");
    write(group + "/memory.current", std::to_string(used) + "\n");
  }
  [[nodiscard]] std::vector<std::uint64_t> rooms() const {
    std::vector<std::uint64_t> rooms;
    for (const MemoryLimit& one : memory_limits(root_)) rooms.push_back(one.room_bytes);
    return rooms;
  }

  std::string root_;
};

constexpr std::uint64_t kMachine = 8'192'000;

TEST_F(MemoryLimits, OfTheMachineAlone) {
  EXPECT_EQ(rooms(), std::vector<std::uint64_t>{kMachine});
  EXPECT_EQ(memory_limits(root_)[0].id, 0U);
}

TEST_F(MemoryLimits, OfNestedGroupsOfVersion2) {
  write("/proc/self/cgroup", "0::/outer/inner\n");
  write("/proc/self/mountinfo",
        "24 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "36 24 0:31 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  limit("/sys/fs/cgroup/outer", 5000, 2000);
  write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("/sys/fs/cgroup/outer/inner/memory.current", "100\n");
  EXPECT_EQ(rooms(), (std::vector<std::uint64_t>{kMachine, 3000}));
  limit("/sys/fs/cgroup/outer/inner", 1000, 900);
  write("/sys/fs/cgroup/outer/inner/memory.stat", "anon 1\ninactive_file 30\nactive_file 5\n");
  EXPECT_EQ(rooms(), (std::vector<std::uint64_t>{kMachine, 135, 3000}));
  limit("/sys/fs/cgroup/outer", 5000, 6000);
  EXPECT_EQ(rooms(), (std::vector<std::uint64_t>{kMachine, 135, 0}));
  const auto limits = memory_limits(root_);
  EXPECT_NE(limits[1].id, limits[2].id);
}

// A container sees its own group as the top.
TEST_F(MemoryLimits, OfAGroupThatIsMountedAsTheTop) {
  write("/proc/self/cgroup", "12:cpu,memory:/docker/abc\n0::/\n");
  write("/proc/self/mountinfo",
        "36 24 0:31 /docker/abc /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n");
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "3000\n");
  write("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file 20\ntotal_active_file 1\n");
  EXPECT_EQ(rooms(), (std::vector<std::uint64_t>{kMachine, 4021}));
}

// The group's name only begins as that of what is mounted.
TEST_F(MemoryLimits, OfAGroupThatIsNotMounted) {
  write("/proc/self/cgroup", "0::/ab\n");
  write("/proc/self/mountinfo", "36 24 0:31 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  limit("/sys/fs/cgroup", 500, 200);
  EXPECT_EQ(rooms(), (std::vector<std::uint64_t>{kMachine, 300}));
}

TEST_F(MemoryLimits, OfVersion1WhereBothVersionsAreMounted) {
  write("/proc/self/cgroup", "4:memory:/a/b\n0::/a/b\n");
  write("/proc/self/mountinfo",
        "36 24 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n"
        "37 24 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "38 24 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "3000\n");
  write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4000\n");
  write("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "3500\n");
  EXPECT_EQ(rooms(), (std::vector<std::uint64_t>{kMachine, 9223372036854768712U, 500}));
}

TEST(ThisMachine, HasRoom) {
  for (const MemoryLimit& limit : memory_limits()) EXPECT_GT(limit.room_bytes, 0U) << limit.id;
  EXPECT_FALSE(memory_limits().empty());
}

}  // namespace
}  // namespace rondo::detail

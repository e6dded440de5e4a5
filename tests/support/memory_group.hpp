// A control group that limits memory.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

namespace rondo::test {

// A control group for memory, of version 1, below the one that is mounted; it is removed when the
// processes in it have ended.
class MemoryGroup {
 public:
  MemoryGroup() {
    std::error_code cannot;
    made_ = std::filesystem::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes") &&
            std::filesystem::create_directory(folder_, cannot);
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  ~MemoryGroup() {
    std::error_code busy;  // processes may not be gone yet, although they have been waited for
    while (made_ && !std::filesystem::remove(folder_, busy) &&
           busy == std::errc::device_or_resource_busy) {
      std::this_thread::yield();
    }
  }

  [[nodiscard]] bool made() const { return made_; }
  // Each of these is false if the system refuses it.
  [[nodiscard]] bool enter() const { return write("cgroup.procs", "0"); }
  [[nodiscard]] bool lift_limit() const { return write("memory.limit_in_bytes", "-1"); }
  // So much, beside what is used.
  [[nodiscard]] bool leave_room_for(std::uint64_t bytes) const {
    std::uint64_t used = 0;
    std::ifstream(folder_ / "memory.usage_in_bytes") >> used;
    return used != 0 && write("memory.limit_in_bytes", std::to_string(used + bytes));
  }

 private:
  [[nodiscard]] bool write(const char* file, const std::string& text) const {
    std::ofstream stream(folder_ / file);
    stream << text << std::flush;
    return stream.good();
  }

  std::filesystem::path folder_ = "/sys/fs/cgroup/memory/rondo-test-" + std::to_string(::getpid());
  bool made_ = false;
};

}  // namespace rondo::test

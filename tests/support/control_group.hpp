// A control group (cgroup) of this test.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace rondo::test {

// A control group of version 1 for one controller ("memory", "cpu"), below the one that is mounted;
// it is removed when the processes in it have ended.
class ControlGroupOfTest {
 public:
  // `file`: one that the controller shows.
  ControlGroupOfTest(std::string_view controller, std::string_view file)
      : folder_(std::filesystem::path("/sys/fs/cgroup") / controller) {
    const bool mounted = std::filesystem::exists(folder_ / file);
    folder_ /= "rondo-test-" + std::to_string(::getpid());
    std::error_code cannot;
    made_ = mounted && std::filesystem::create_directory(folder_, cannot);
  }
  ControlGroupOfTest(const ControlGroupOfTest&) = delete;
  ControlGroupOfTest& operator=(const ControlGroupOfTest&) = delete;
  ~ControlGroupOfTest() {
    std::error_code busy;  // processes may not be gone yet, although they have been waited for
    while (made_ && !std::filesystem::remove(folder_, busy) &&
           busy == std::errc::device_or_resource_busy) {
      std::this_thread::yield();
    }
  }

  [[nodiscard]] bool made() const { return made_; }
  // Each of these is false if the system refuses it.
  [[nodiscard]] bool enter() const { return write("cgroup.procs", "0"); }
  [[nodiscard]] bool write(const char* file, const std::string& text) const {
    std::ofstream stream(folder_ / file);
    stream << text << std::flush;
    return stream.good();
  }
  // 0 where there is no such number.
  template <class Number>
  [[nodiscard]] Number read(const char* file) const {
    Number number = 0;
    std::ifstream(folder_ / file) >> number;
    return number;
  }

 private:
  std::filesystem::path folder_;
  bool made_ = false;
};

}  // namespace rondo::test

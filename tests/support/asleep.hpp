// A thread that sleeps on a bell until somebody rings it.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "carrier/bell.hpp"

namespace rondo::test {

// Whether a thread of this process, as gettid() names it, sleeps in the kernel.
inline bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t end = line.rfind(')');  // of the thread's name
  return end != std::string::npos && line.size() > end + 2 && line[end + 2] == 'S';
}

// Its thread is asleep when the constructor returns; the destructor returns when the bell was rung.
// A thread that is never woken sleeps for longer than a test may take.
class SleeperOn {
 public:
  explicit SleeperOn(detail::Bell& bell)
      : thread_([this, &bell] {
          id_ = ::gettid();
          bell.sleep([this] { return looked_.exchange(true); }, std::chrono::seconds(100'000));
        }) {
    while (!looked_ || !is_asleep(id_)) std::this_thread::yield();
  }
  SleeperOn(const SleeperOn&) = delete;
  SleeperOn& operator=(const SleeperOn&) = delete;
  ~SleeperOn() { thread_.join(); }

 private:
  std::atomic<bool> looked_ = false;
  std::atomic<pid_t> id_ = 0;
  std::thread thread_;  // last, since it uses the others
};

}  // namespace rondo::test

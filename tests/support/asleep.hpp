// Whether a thread of this process sleeps in the kernel.
#pragma once

#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace rondo::test {

// `thread`: as gettid() names it.
inline bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t end = line.rfind(')');  // of the thread's name
  return end != std::string::npos && line.size() > end + 2 && line[end + 2] == 'S';
}

inline void wait_until_asleep(pid_t thread) {
  while (!is_asleep(thread)) std::this_thread::yield();
}

}  // namespace rondo::test

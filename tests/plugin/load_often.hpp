// Loads and unloads a plugin again and again. What the process has (descriptors, threads, reactions
// to signals) must stay as it is after the first times.
#pragma once

#include <dlfcn.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>

namespace rondo::test {

inline std::ptrdiff_t entries(const char* folder) {
  const std::filesystem::directory_iterator files(folder);
  return std::distance(begin(files), end(files));
}

inline void own_reaction(int /*signal*/) {}

// `use` gets the plugin's handle and which time it is, and says with 0 that all went well. Returns
// 0 or what went wrong, which it prints.
inline int load_often(const char* plugin, int times, const std::function<int(void*, int)>& use) {
  std::ptrdiff_t files = 0;
  std::ptrdiff_t threads = 0;
  for (int time = 0; time < times; ++time) {
    void* handle = ::dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      std::fprintf(stderr, "%s\n", ::dlerror());
      return 1;
    }
    // Not before: with MPI the system may load UCX, whose handlers are there before any code of
    // Rondo runs.
    if (time == 0) std::signal(SIGSEGV, own_reaction);
    if (const int code = use(handle, time)) {
      std::fprintf(stderr, "the plugin failed at time %d with %d\n", time, code);
      return 2;
    }
    if (::dlclose(handle) != 0) return 3;
    if (::dlopen(plugin, RTLD_NOW | RTLD_NOLOAD) != nullptr) {
      std::fprintf(stderr, "the plugin is still loaded\n");
      return 6;
    }
    if (time == 10) {
      files = entries("/proc/self/fd");
      threads = entries("/proc/self/task");
    }
  }
  struct sigaction now{};
  ::sigaction(SIGSEGV, nullptr, &now);
  if (now.sa_handler != own_reaction) {
    std::fprintf(stderr, "the program's handler of SIGSEGV is gone\n");
    return 4;
  }
  if (entries("/proc/self/fd") <= files && entries("/proc/self/task") <= threads) return 0;
  std::fprintf(stderr, "%td descriptors, then %td; %td threads, then %td\n", files,
               entries("/proc/self/fd"), threads, entries("/proc/self/task"));
  return 5;
}

}  // namespace rondo::test

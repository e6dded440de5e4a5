// Ranks on several hosts, started by rondo-launch: watched_groups vanish | orphan | many.
//
// vanish: all ranks but rank 0 make calls in a communicator of their own until one fails, and print
// why; rank 0 makes none and waits to be ended.
//
// orphan: all ranks make calls until one fails, and print why; rank 1 kills itself, but not a child
// that it has made.
//
// many: joining again and again, with all communicators kept, takes no descriptors.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <rondo/rondo.hpp>

namespace {

int call_until_one_fails(rondo::Communicator& comm) {
  std::vector<float> values(1U << 20U);
  try {
    for (;;) comm.all_reduce(values);
  } catch (const rondo::Error& error) {
    std::printf("%s\n", error.what());
  }
  return 1;
}

int leave_an_orphan() {
  rondo::Communicator comm = rondo::from_environment();
  std::vector<float> values(1U << 20U);
  comm.all_reduce(values);
  if (comm.rank() == 1) {
    if (::fork() == 0) {
      ::pause();  // until rondo-launch ends it
      ::_exit(0);
    }
    ::raise(SIGKILL);
  }
  return call_until_one_fails(comm);
}

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return std::distance(begin(folder), end(folder));
}

int join_often() {
  std::vector<rondo::Communicator> kept;
  std::ptrdiff_t first = 0;
  for (int i = 0; i < 20; ++i) {
    kept.push_back(rondo::from_environment());
    for (rondo::Communicator& comm : kept) {
      std::vector<int> one{1};
      comm.all_reduce(one);
      if (one[0] != comm.size()) return 1;
    }
    if (i == 0) first = open_files();
  }
  std::printf("%td files open with one communicator, %td with %zu\n", first, open_files(),
              kept.size());
  return open_files() <= first ? 0 : 1;  // UCX may have opened files for a while
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string("many")) return join_often();
  if (argc == 2 && argv[1] == std::string("orphan")) return leave_an_orphan();
  rondo::Communicator comm = rondo::from_environment();
  const bool apart = comm.rank() == 0;
  std::optional<rondo::Communicator> group = comm.split(apart ? std::nullopt : std::optional(0), 0);
  if (apart) ::pause();
  return call_until_one_fails(*group);
}

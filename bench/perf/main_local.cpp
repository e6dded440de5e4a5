// rondo-perf, built without MPI: ranks of one host.

#include <algorithm>
#include <cstdio>
#include <exception>

#include "bench/perf/run.hpp"
#include "tools/launch/launch.hpp"

int main(int argc, char** argv) {
  const rondo::perf::Options options = rondo::perf::parse(argc, argv, false);
  const auto body = [&](rondo::Communicator comm) {
    return rondo::perf::run(std::move(comm), options, {}) == 0 ? 0 : 1;
  };
  try {
    if (options.processes > 0) {
      return rondo::launch::run_processes("rondo-perf", options.processes, body);
    }
    return rondo::launch::run_threads(std::max(options.ranks, 1), body);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-perf: %s\n", error.what());
    return 2;
  }
}

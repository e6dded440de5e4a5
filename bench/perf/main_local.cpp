// rondo-perf, built without MPI: groups of ranks in one process.

#include <algorithm>
#include <cstdio>
#include <exception>

#include "bench/perf/run.hpp"

int main(int argc, char** argv) {
  rondo::perf::Options options = rondo::perf::parse(argc, argv, false);
  options.ranks = std::max(options.ranks, 1);
  try {
    const std::uint64_t wrong = options.processes > 0
                                    ? rondo::perf::run_processes_of_this_host(options)
                                    : rondo::perf::run_local_group(options);
    return wrong == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-perf: %s\n", error.what());
    return 2;
  }
}

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <utility>

#include "compute_threads.hpp"
#include "start.hpp"
#include "tools/launch/launch.hpp"

namespace lenet {

int start(const Start& how, int threads, int* /*argc*/, char*** /*argv*/,
          const std::function<void(rondo::Communicator)>& body) {
  const auto one_rank = [&](rondo::Communicator comm) {
    use_compute_threads(threads);
    body(std::move(comm));
    return 0;
  };
  try {
    if (how.processes > 0) {
      return rondo::launch::run_processes("rondo-lenet", how.processes, one_rank);
    }
    return rondo::launch::run_threads(std::max(how.ranks, 1), one_rank);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-lenet: %s\n", error.what());
    return 1;
  }
}

SumGradients sum_with_mpi() {
  return
      [](std::span<float>) { throw std::runtime_error("this rondo-lenet was built without MPI"); };
}

}  // namespace lenet

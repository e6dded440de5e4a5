#include <mpi.h>

#include <cstdio>
#include <exception>
#include <rondo/mpi.hpp>
#include <utility>

#include "compute_threads.hpp"
#include "start.hpp"
#include "tools/launch/launch.hpp"

namespace lenet {
namespace {

int start_under_mpirun(int* argc, char*** argv,
                       const std::function<void(rondo::Communicator)>& body) {
  int level = MPI_THREAD_SINGLE;
  // On the CPU blocking calls of the main thread are all that is made; devices of several hosts need a
  // thread of Rondo's.
  MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
  try {
    body(rondo::from_mpi(MPI_COMM_WORLD));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-lenet: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}

}  // namespace

int start(const Start& how, int threads, int* argc, char*** argv,
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
    if (how.ranks > 0) return rondo::launch::run_threads(how.ranks, one_rank);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-lenet: %s\n", error.what());
    return 1;
  }
  use_compute_threads(threads);
  return start_under_mpirun(argc, argv, body);
}

SumGradients sum_with_mpi() {
  return [](std::span<float> gradients) {
    MPI_Allreduce(MPI_IN_PLACE, gradients.data(), static_cast<int>(gradients.size()), MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
  };
}

}  // namespace lenet

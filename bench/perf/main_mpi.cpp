// rondo-perf, built with MPI.

#include <mpi.h>

#include <cstdio>
#include <exception>
#include <rondo/mpi.hpp>

#include "bench/perf/mpi_peer.hpp"
#include "bench/perf/run.hpp"
#include "tools/launch/launch.hpp"

namespace {

int run_under_mpirun(int* argc, char*** argv, const rondo::perf::Options& options) {
  int level = MPI_THREAD_SINGLE;
  // Devices of several hosts need a thread of Rondo's to move their slots.
  MPI_Init_thread(argc, argv, options.on_devices ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED,
                  &level);
  std::uint64_t wrong = 0;
  try {
    wrong = rondo::perf::run(rondo::from_mpi(MPI_COMM_WORLD), options,
                             rondo::perf::mpi_peer(MPI_COMM_WORLD));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-perf: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const rondo::perf::Options options = rondo::perf::parse(argc, argv, true);
  const auto body = [&](rondo::Communicator comm) {
    return rondo::perf::run(std::move(comm), options, {}) == 0 ? 0 : 1;
  };
  try {
    if (options.processes > 0) {
      return rondo::launch::run_processes("rondo-perf", options.processes, body);
    }
    if (options.ranks > 0) return rondo::launch::run_threads(options.ranks, body);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-perf: %s\n", error.what());
    return 2;
  }
  return run_under_mpirun(&argc, &argv, options);
}

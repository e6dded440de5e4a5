// rondo-perf, built with MPI.

#include <mpi.h>

#include <cstdio>
#include <exception>
#include <rondo/mpi.hpp>

#include "bench/perf/mpi_peer.hpp"
#include "bench/perf/run.hpp"

namespace {

std::uint64_t run_processes(const rondo::perf::Options& options) {
  return rondo::perf::run(rondo::from_mpi(MPI_COMM_WORLD), options,
                          rondo::perf::mpi_peer(MPI_COMM_WORLD));
}

}  // namespace

int main(int argc, char** argv) {
  const rondo::perf::Options options = rondo::perf::parse(argc, argv, true);
  const bool with_mpi = options.ranks == 0 && options.processes == 0;
  int level = MPI_THREAD_SINGLE;
  // Devices of several hosts need a thread of Rondo's to move their slots.
  const int wanted = options.on_devices ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
  if (with_mpi) MPI_Init_thread(&argc, &argv, wanted, &level);
  std::uint64_t wrong = 0;
  try {
    if (with_mpi) {
      wrong = run_processes(options);
    } else {
      wrong = options.ranks > 0 ? rondo::perf::run_local_group(options)
                                : rondo::perf::run_processes_of_this_host(options);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-perf: %s\n", error.what());
    if (with_mpi) MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
  }
  if (with_mpi) MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}

// rondo-perf, built with MPI.

#include <mpi.h>

#include <cstdio>
#include <exception>
#include <rondo/mpi.hpp>

#include "bench/perf/mpi_peer.hpp"
#include "bench/perf/run.hpp"

namespace {

std::uint64_t run_processes(const rondo::perf::Options& options) {
  rondo::Communicator comm = rondo::from_mpi(MPI_COMM_WORLD);
  return rondo::perf::run(comm, options, rondo::perf::mpi_peer(MPI_COMM_WORLD));
}

}  // namespace

int main(int argc, char** argv) {
  const rondo::perf::Options options = rondo::perf::parse(argc, argv, true);
  int level = MPI_THREAD_SINGLE;
  if (options.ranks == 0) MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  std::uint64_t wrong = 0;
  try {
    wrong = options.ranks > 0 ? rondo::perf::run_local_group(options) : run_processes(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-perf: %s\n", error.what());
    if (options.ranks == 0) MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
  }
  if (options.ranks == 0) MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}

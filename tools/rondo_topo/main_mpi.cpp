// rondo-topo, built with MPI.

#include <mpi.h>

#include <cstdio>
#include <exception>
#include <rondo/mpi.hpp>
#include <utility>

#include "print.hpp"
#include "tools/launch/launch.hpp"

namespace {

int show_under_mpirun(int* argc, char*** argv, const rondo::topo::Options& options) {
  rondo::CommunicatorOptions wanted;
  wanted.carrier = options.carrier;
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(argc, argv, options.on_devices ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED,
                  &level);
  try {
    rondo::topo::show(rondo::from_mpi(MPI_COMM_WORLD, wanted), options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-topo: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const rondo::topo::Options options = rondo::topo::parse(argc, argv);
  rondo::CommunicatorOptions wanted;
  wanted.carrier = options.carrier;
  const auto body = [&](rondo::Communicator comm) {
    rondo::topo::show(std::move(comm), options);
    return 0;
  };
  try {
    if (options.processes > 0) {
      return rondo::launch::run_processes("rondo-topo", options.processes, body, wanted);
    }
    if (options.ranks > 0) return rondo::launch::run_threads(options.ranks, body, wanted);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-topo: %s\n", error.what());
    return 1;
  }
  return show_under_mpirun(&argc, &argv, options);
}

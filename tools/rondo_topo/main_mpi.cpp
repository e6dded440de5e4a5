// rondo-topo, built with MPI.

#include <mpi.h>

#include <cstdio>
#include <exception>
#include <rondo/mpi.hpp>

#include "print.hpp"

int main(int argc, char** argv) {
  const rondo::topo::Options options = rondo::topo::parse(argc, argv);
  rondo::CommunicatorOptions wanted;
  wanted.carrier = options.carrier;
  if (options.ranks > 0) {
    try {
      rondo::topo::print(rondo::local_group(options.ranks, wanted).front());
      return 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rondo-topo: %s\n", error.what());
      return 1;
    }
  }
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  try {
    const rondo::Communicator comm = rondo::from_mpi(MPI_COMM_WORLD, wanted);
    if (comm.rank() == 0) rondo::topo::print(comm);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-topo: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}

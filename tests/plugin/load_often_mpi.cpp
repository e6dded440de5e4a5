// Ranks of mpirun that load and unload a plugin with Rondo again and again: load_often_mpi PLUGIN
// TIMES. MPI is the program's own.
#include <mpi.h>

#include <cstdio>
#include <string>

#include "tests/plugin/load_often.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  MPI_Init(&argc, &argv);
  const int code = rondo::test::load_often(argv[1], std::stoi(argv[2]), [](void* plugin, int) {
    return reinterpret_cast<int (*)()>(::dlsym(plugin, "add_by_mpi"))();
  });
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return 0;
}

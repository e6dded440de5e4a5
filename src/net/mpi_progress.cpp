#include "net/mpi_progress.hpp"

#include <mpi.h>

#include "base/check_mpi.hpp"

namespace rondo::detail {
namespace {

bool mpi_has_ended() {
  int ended = 0;
  MPI_Finalized(&ended);
  return ended != 0;
}

bool on_main_thread() {
  int main = 0;
  MPI_Is_thread_main(&main);
  return main != 0;
}

}  // namespace

std::function<void()> drive_mpi() {
  int level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  if (level == MPI_THREAD_SERIALIZED) return nullptr;
  // A probe that finds nothing makes MPI look at its network; MPICH does so only for a communicator
  // of several ranks. Nobody else uses the largest tag that every MPI allows, and if a program
  // does, the probe only finds its message.
  int rank = 0;
  int size = 1;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  const int next = (rank + 1) % size;
  return [level, next] {
    if (mpi_has_ended() || (level != MPI_THREAD_MULTIPLE && !on_main_thread())) return;
    constexpr int kTag = 32767;
    int found = 0;
    MPI_Iprobe(next, kTag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  };
}

}  // namespace rondo::detail

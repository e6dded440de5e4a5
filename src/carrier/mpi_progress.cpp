#include "carrier/mpi_progress.hpp"

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
  return [level] {
    if (mpi_has_ended() || (level != MPI_THREAD_MULTIPLE && !on_main_thread())) return;
    // A probe that finds nothing makes MPI look at its network. This rank has sent itself nothing with the largest tag that
    // every MPI allows: at worst a probe finds a message, and does nothing else.
    constexpr int kTag = 32767;
    int found = 0;
    MPI_Iprobe(0, kTag, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
  };
}

}  // namespace rondo::detail

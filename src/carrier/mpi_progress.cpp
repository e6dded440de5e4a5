#include "carrier/mpi_progress.hpp"

#include <mpi.h>

#include <memory>

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

// A communicator without messages.
class Quiet {
 public:
  Quiet() {
    check_mpi(MPI_Comm_dup(MPI_COMM_SELF, &comm_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
  ~Quiet() {
    if (!mpi_has_ended()) MPI_Comm_free(&comm_);
  }

  // A probe that finds nothing makes MPI look at its network.
  void probe() const {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, MPI_STATUS_IGNORE);
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace

std::function<void()> drive_mpi() {
  int level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  if (level == MPI_THREAD_SERIALIZED) return nullptr;
  return [quiet = std::make_shared<Quiet>(), level] {
    const bool may = level == MPI_THREAD_MULTIPLE || on_main_thread();
    if (may && !mpi_has_ended()) quiet->probe();
  };
}

}  // namespace rondo::detail

#include <rondo/mpi.hpp>

#include <memory>
#include <string>
#include <utility>

#include "base/check_mpi.hpp"
#include "bootstrap/mpi_bootstrap.hpp"
#include "bootstrap/mpi_link_probe.hpp"
#include "carrier/mpi_pump.hpp"
#include "communicator/join.hpp"

namespace rondo {
namespace detail {
namespace {

void require_running_mpi(MPI_Comm comm) {
  int initialised = 0;
  int finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (initialised == 0 || finalised != 0) {
    throw UsageError(
        "from_mpi: MPI is not running; call MPI_Init or MPI_Init_thread first, and "
        "MPI_Finalize after the communicator is destroyed");
  }
  if (comm == MPI_COMM_NULL) throw UsageError("from_mpi: the communicator is MPI_COMM_NULL");
  int is_inter = 0;
  check_mpi(MPI_Comm_test_inter(comm, &is_inter), "MPI_Comm_test_inter");
  if (is_inter != 0) {
    throw UsageError(
        "from_mpi: the communicator is an inter-communicator; merge it first "
        "(MPI_Intercomm_merge)");
  }
}

// A duplicate that reports errors instead of ending the program.
class Duplicate {
 public:
  explicit Duplicate(MPI_Comm comm) {
    check_mpi(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  Duplicate(const Duplicate&) = delete;
  Duplicate& operator=(const Duplicate&) = delete;
  ~Duplicate() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  [[nodiscard]] MPI_Comm get() const { return comm_; }
  MPI_Comm release() { return std::exchange(comm_, MPI_COMM_NULL); }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace
}  // namespace detail

Communicator from_mpi(MPI_Comm comm, const CommunicatorOptions& options) {
  detail::require_running_mpi(comm);
  detail::Duplicate duplicate(comm);
  detail::MpiBootstrap bootstrap(duplicate.get());
  const auto probe = [&](int next, int prev) {
    try {
      return detail::probe_links(duplicate.get(), next, prev);
    } catch (...) {
      // Messages may still be under way: never free the duplicate, so that no later communicator receives them.
      static_cast<void>(duplicate.release());
      throw;
    }
  };
  const auto make_pump = [&](detail::PumpEdges edges) {
    auto pump = std::make_unique<detail::MpiPump>(duplicate.get(), std::move(edges));
    static_cast<void>(duplicate.release());  // the pump's from now on
    return pump;
  };
  return Communicator(detail::join(
      bootstrap, options, detail::prepare_to_join(options, bootstrap.rank()), probe, make_pump));
}

}  // namespace rondo

#include <rondo/mpi.hpp>

#include <memory>
#include <string>
#include <utility>

#include "base/check_mpi.hpp"
#include "base/environment.hpp"
#include "bootstrap/launchers.hpp"
#include "bootstrap/mpi_bootstrap.hpp"
#include "bootstrap/release.hpp"
#include "communicator/join.hpp"
#include "joining/by_ucx.hpp"
#include "joining/watch_hosts.hpp"
#include "net/link_probe.hpp"
#include "net/mpi_messenger.hpp"
#include "net/mpi_progress.hpp"
#include "net/pump.hpp"

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

// Where MPI does not see the processes that were started together, each would be a world of its
// own.
void require_the_launchers_world(MPI_Comm comm) {
  int ranks_of_world = 0;
  int ranks = 0;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks_of_world), "MPI_Comm_size");
  check_mpi(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
  if (ranks_of_world > 1 || ranks > 1 || comm == MPI_COMM_SELF) return;
  const std::string objection = objection_to_mpi_alone(environment_of_launchers);
  if (!objection.empty()) throw UsageError("from_mpi: " + objection);
}

// A duplicate that reports errors instead of ending the program.
MPI_Comm duplicate_of(MPI_Comm comm) {
  MPI_Comm duplicate = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(comm, &duplicate), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(duplicate, MPI_ERRORS_RETURN);
  return duplicate;
}

}  // namespace
}  // namespace detail

Communicator from_mpi(MPI_Comm comm, const CommunicatorOptions& options) {
  detail::require_running_mpi(comm);
  detail::require_the_launchers_world(comm);
  const MPI_Comm duplicate = detail::duplicate_of(comm);
  std::unique_ptr<detail::Messenger> messenger = detail::message_by_mpi(duplicate);
  detail::MpiBootstrap bootstrap(duplicate);
  detail::require_one_release(bootstrap);
  const auto probe = [&](int next, int prev) {
    try {
      return detail::probe_links(*messenger, next, prev);
    } catch (...) {
      // Messages may still be under way: never free the duplicate, so that no later communicator
      // receives them.
      static_cast<void>(messenger.release());
      throw;
    }
  };
  const auto make_pump = [&](detail::PumpEdges edges) -> std::unique_ptr<detail::Pump> {
    return std::make_unique<detail::Pump>(std::move(messenger), std::move(edges));
  };
  detail::Joining joining = detail::prepare_to_join(options, bootstrap.rank());
  messenger->set_patience(joining.defaults.timeout);
  bootstrap.set_patience(joining.defaults.timeout);
  const NetworkOptions network_options = detail::with_environment(options.network);
  // MPI itself does not report to the ranks which of them has ended.
  detail::ToWatch to_watch =
      detail::connections_to_watch(bootstrap, network_options.interface.value_or(""));
  detail::NetworkCarrier network{.carrier = Carrier::mpi, .probe = probe, .make_pump = make_pump};
  if (options.carrier == CarrierChoice::ucx) {
    network = detail::by_ucx(network_options, to_watch.interfaces, joining.defaults.timeout);
  }
  network.drive_program = detail::drive_mpi();
  detail::make_watch(network, bootstrap);
  const std::chrono::milliseconds patience = joining.defaults.timeout;
  auto state = detail::join(bootstrap, options, std::move(joining), network);
  detail::add_links(*network.hosts, "from_mpi", std::move(to_watch.connections),
                    detail::deadline_after(patience));
  return Communicator(std::move(state));
}

}  // namespace rondo

#include "communicator/join.hpp"

#include <utility>

#include <rondo/errors.hpp>

#include "joining/fifo_sizes.hpp"

namespace rondo::detail {

Joining prepare_to_join(const CommunicatorOptions& options, int rank) {
  Joining joining;
  try {
    joining.defaults = resolve_defaults(options);
    validate_geometry(options);
    if (rank == 0) joining.defaults.tuning = load_tuning();
  } catch (const UsageError& error) {
    joining.refusal = error.what();
  }
  return joining;
}

std::unique_ptr<CommunicatorState> join(Bootstrap& bootstrap, const CommunicatorOptions& options,
                                        Joining joining, const NetworkCarrier& network) {
  // Before wire_processes(), since the pump that it makes then owns the bootstrap's MPI
  // communicator.
  joining.defaults.tuning = bootstrap.exchange(joining.defaults.tuning)[0];
  Wiring wiring = wire_processes(bootstrap, options, joining.refusal, network);
  return std::make_unique<CommunicatorState>(std::move(wiring), joining.defaults, options);
}

}  // namespace rondo::detail

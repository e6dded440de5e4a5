// The steps that are the same however processes join a communicator.
#pragma once

#include <memory>
#include <string>

#include <rondo/options.hpp>

#include "bootstrap/bootstrap.hpp"
#include "communicator/state.hpp"
#include "joining/wire.hpp"

namespace rondo::detail {

// What a process brings when it joins.
struct Joining {
  Defaults defaults;
  std::string refusal;  // why it cannot go on; empty if it can. It joins even so, to give the
                        // others the reason
};

// Only rank 0 reads the tuning, since files may differ between hosts. Never throws UsageError.
Joining prepare_to_join(const CommunicatorOptions& options, int rank);

// Collective over the bootstrap's ranks; all throw if one cannot join. Throws UsageError,
// TransportError.
std::unique_ptr<CommunicatorState> join(Bootstrap& bootstrap, const CommunicatorOptions& options,
                                        Joining joining, const NetworkCarrier& network);

}  // namespace rondo::detail

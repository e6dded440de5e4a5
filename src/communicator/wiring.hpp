// Joins ranks: decides the ring's order and each edge's carrier, and makes both ends of every FIFO.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <rondo/options.hpp>

#include "bootstrap/bootstrap.hpp"
#include "engine/engine.hpp"

namespace rondo::detail {

// One wiring for each rank of a group in this process. Throws UsageError, TransportError.
std::vector<Wiring> wire_local_group(int size, const CommunicatorOptions& options);

// Makes the pump that carries this rank's edges to other hosts.
using PumpFactory = std::function<std::unique_ptr<Pump>(PumpEdges)>;

// This process's wiring; collective over the bootstrap's ranks, and all ranks throw if one cannot
// be joined. Throws UsageError, TransportError.
Wiring wire_processes(Bootstrap& bootstrap, const CommunicatorOptions& options,
                      const PumpFactory& make_pump);

}  // namespace rondo::detail

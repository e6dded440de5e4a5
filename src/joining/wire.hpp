// Joins ranks: decides the ring's order and each edge's carrier, and makes both ends of every FIFO.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rondo/options.hpp>

#include "bootstrap/bootstrap.hpp"
#include "engine/wiring.hpp"
#include "net/link_probe.hpp"
#include "net/pump.hpp"

namespace rondo::detail {

// Makes one wiring for each rank of a group in this process. Throws UsageError, TransportError.
std::vector<Wiring> wire_local_group(int size, const CommunicatorOptions& options);

// Makes the pump that carries this rank's edges to other hosts.
using PumpFactory = std::function<std::unique_ptr<Pump>(PumpEdges)>;

// What carries edges between hosts.
struct NetworkCarrier {
  Carrier carrier = Carrier::mpi;
  // Makes the network usable before its first use. Collective; all ranks throw if one cannot. Null
  // means that the network is usable.
  std::function<void(Bootstrap&)> open = {};
  // Exchanges a first message with both neighbours in the ring, which are those of `probe`. Throws
  // an error that names the rank that does not answer. Null if the network's library names it.
  std::function<void(int next, int prev)> greet = {};
  LinkProbe probe = {};
  PumpFactory make_pump = {};
  // engine/wiring.hpp: Waiting
  std::function<void()> drive_program = {};
  std::shared_ptr<HostWatch> hosts = {};
  std::vector<int> watched_as = {};
};

// Makes this process's wiring. Collective over the bootstrap's ranks; all ranks throw if one cannot
// be joined. A rank that has found its own arguments wrong still takes part, with the reason as
// `refusal`, so that no other rank waits for it. Throws UsageError, TransportError.
Wiring wire_processes(Bootstrap& bootstrap, const CommunicatorOptions& options,
                      const std::string& refusal, const NetworkCarrier& network);

}  // namespace rondo::detail

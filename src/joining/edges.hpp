// Decides which carrier each edge has, and says why.
#pragma once

#include <string>
#include <vector>

#include <rondo/options.hpp>
#include <rondo/topology.hpp>

#include "bootstrap/share_memory.hpp"
#include "joining/rank_facts.hpp"

namespace rondo::detail {

// What the choice between shared memory and the network depends on.
struct CarrierFacts {
  CarrierChoice choice = CarrierChoice::automatic;
  Carrier network = Carrier::mpi;
  const Hosts* hosts = nullptr;
  const std::vector<RankPlace>* places = nullptr;
  const SharedMemory* shared = nullptr;
};

// Whether two ranks have the same memory mapped.
bool have_same_memory(const Hosts& hosts, const SharedMemory& shared, int a, int b);

// Returns the ranks that share memory with `rank`, and `rank` itself.
std::vector<int> ranks_sharing(const Hosts& hosts, const SharedMemory& shared, int rank);

// Says why two ranks exchange messages by the network: they are on different hosts.
std::string reason_for_network(const std::vector<RankPlace>& places, int from, int to);
// Says why two ranks of one host share no memory: one of them could not map it.
std::string reason_for_no_memory(const SharedMemory& shared, int from, int to);

Edge edge_of(const ScheduleEdge& edge, const CarrierFacts& facts);

// Settles the carrier of every edge, with the same result on all ranks, and logs this rank's edges.
// Throws TransportError if CarrierChoice::shm was asked for and an edge cannot be in shared memory.
std::vector<Edge> settle_edges(const std::vector<ScheduleEdge>& edges, const CarrierFacts& facts,
                               int rank);

}  // namespace rondo::detail

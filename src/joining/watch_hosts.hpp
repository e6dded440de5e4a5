// How the ranks of a communicator come to watch each other's processes and hosts
// (net/host_links.hpp).
#pragma once

#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/bootstrap.hpp"
#include "joining/wire.hpp"

namespace rondo::detail {

// Gives the network a watch over all ranks, still without connections. Collective.
void make_watch(NetworkCarrier& network, Bootstrap& bootstrap);

// Keeps connections by which ranks have joined, so that a process that ends and a host that
// vanishes are noticed. Two processes need one for all their communicators. `sockets`: by rank. A
// connection that is lost meanwhile is not kept; the next call reports what became of that rank.
// `caller`: the function that the program has called, for warnings.
void add_links(HostWatch& hosts, const std::string& caller, std::vector<FileDescriptor> sockets,
               Clock::time_point deadline);

// Returns the network interfaces that this rank should use between hosts, with commas between them.
// These are `met_by`, by which the rank has met the others (empty: not known). A rank that runs
// beside rank 0, and has met it without a network, uses those of rank 0. Collective.
std::string interfaces_of_meeting(Bootstrap& bootstrap, const std::string& met_by);

struct ToWatch {
  std::vector<FileDescriptor> connections;  // by rank, on rank 0; on other ranks, that to rank 0
  std::string interfaces;                   // interfaces_of_meeting()
};
// Makes connections for the watch alone, for ranks that have joined by something else. Makes none
// if all ranks are on one host, and none if they cannot be made. `interface`: where rank 0 listens;
// empty: at all interfaces. Collective.
ToWatch connections_to_watch(Bootstrap& bootstrap, const std::string& interface);

}  // namespace rondo::detail

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
void make_watch(Network& network, Bootstrap& bootstrap);

// Keeps connections by which ranks have joined, so that a process that ends and a host that
// vanishes are noticed. Two processes need one for all their communicators. `sockets`: by rank. A
// connection that is lost meanwhile is not kept; calls tell what became of that rank. `caller`: the
// function that the program has called, for warnings.
void add_links(HostWatch& hosts, const std::string& caller, std::vector<FileDescriptor> sockets,
               Clock::time_point deadline);

// The network interfaces of this rank to be used between hosts, with commas between them: `met_by`,
// those by which it has met others (empty: not known), or rank 0's if it runs beside rank 0 and has
// met it without a network. Collective.
std::string interfaces_of_meeting(Bootstrap& bootstrap, const std::string& met_by);

struct ToWatch {
  std::vector<FileDescriptor> connections;  // by rank, on rank 0; on other ranks, that to rank 0
  std::string interfaces;                   // interfaces_of_meeting()
};
// Connections of ranks that have joined by something else, made for the watch alone; none where
// they cannot be made, nor where all ranks are on one host and see each other's ends without.
// `interface`: where rank 0 listens; empty: at all. Collective.
ToWatch connections_to_watch(Bootstrap& bootstrap, const std::string& interface);

}  // namespace rondo::detail

#include "print.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>
#include <rondo/cuda.hpp>
#include <rondo/version.hpp>

#include "tools/launch/options.hpp"

namespace rondo::topo {
namespace {

std::string kib(std::uint64_t bytes) {
  return bytes == 0 ? std::string("unknown") : fmt::format("{} KiB", bytes / 1024);
}

void print(const Topology& topology, const std::string& devices) {
  const Machine machine = this_machine();
  fmt::print("machine   {}: {} cores, {} NUMA nodes, L2 {}, L3 {} ({})\n", machine.host,
             machine.cores, machine.numa_nodes, kib(machine.l2_bytes), kib(machine.l3_bytes),
             machine.source);
  fmt::print("devices   {}\n", devices);
  for (std::size_t rank = 0; rank < topology.places.size(); ++rank) {
    const RankPlace& place = topology.places[rank];
    fmt::print("rank {:>4} host {}, process {}, {}{}{}\n", rank, place.host, place.process_id,
               place.numa_node < 0 ? std::string("not bound to one NUMA node")
                                   : fmt::format("NUMA node {}", place.numa_node),
               place.device.empty() ? "" : ", ", place.device);
  }
  fmt::print("ring      ");
  for (const int rank : topology.ring) fmt::print("{} -> ", rank);
  fmt::print("{}\n", topology.ring.front());
  for (const Edge& edge : topology.edges) {
    fmt::print("edge      {:>3} -> {:<3} {:<6}  {} ({})\n", edge.from, edge.to, name(edge.carrier),
               edge.in_ring ? "ring    " : "off-ring", edge.reason);
  }
}

}  // namespace

void show(Communicator comm, const Options& options) {
  const bool prints = comm.rank() == 0;
  if (!options.on_devices) {
    const std::string devices = "not looked at; --device cuda shows the edges between GPUs";
    if (prints) print(comm.topology(), devices);
    return;
  }
  cuda::Options wanted;
  wanted.device = cuda::kSpreadOverDevices;
  if (options.require_peer_access) wanted.peer_access = cuda::PeerAccess::required;
  cuda::Communicator joined = cuda::join(std::move(comm), wanted);
  const std::string devices = fmt::format("{} CUDA devices seen by rank 0; {} channels a rank",
                                          cuda::device_count(), joined.channels());
  if (prints) print(joined.topology(), devices);
  joined.host().barrier();
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("Shows the machine, the ring's order, and how each edge is carried and why.",
               "rondo-topo");
  launch::add_rank_options(app, options.ranks, options.processes, 1024);
  std::string device = "cpu";
  app.add_option("--device", device, "cpu: edges between host memories; cuda: between GPUs")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_flag("--require-peer-access", options.require_peer_access,
               "with --device cuda: fail where GPUs do not reach each other's memory");
  launch::add_named_option(app, "--carrier", options.carrier, launch::carrier_names(),
                           "what carries slots between ranks");
  app.set_version_flag("--version", RONDO_VERSION);
  try {
    app.parse(argc, argv);
    options.on_devices = device == "cuda";
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

}  // namespace rondo::topo

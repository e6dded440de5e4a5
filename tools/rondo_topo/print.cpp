#include "print.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>
#include <rondo/version.hpp>

namespace rondo::topo {
namespace {

std::string kib(std::uint64_t bytes) {
  return bytes == 0 ? std::string("unknown") : fmt::format("{} KiB", bytes / 1024);
}

}  // namespace

void print(const Communicator& comm) {
  const Machine machine = this_machine();
  const Topology& topology = comm.topology();
  fmt::print("machine   {}: {} cores, {} NUMA nodes, L2 {}, L3 {} ({})\n", machine.host,
             machine.cores, machine.numa_nodes, kib(machine.l2_bytes), kib(machine.l3_bytes),
             machine.source);
  for (std::size_t rank = 0; rank < topology.places.size(); ++rank) {
    const RankPlace& place = topology.places[rank];
    fmt::print("rank {:>4} host {}, process {}, {}\n", rank, place.host, place.process_id,
               place.numa_node < 0 ? std::string("not bound to one NUMA node")
                                   : fmt::format("NUMA node {}", place.numa_node));
  }
  fmt::print("ring      ");
  for (const int rank : topology.ring) fmt::print("{} -> ", rank);
  fmt::print("{}\n", topology.ring.front());
  for (const Edge& edge : topology.edges) {
    fmt::print("edge      {:>3} -> {:<3} {}  {} ({})\n", edge.from, edge.to, name(edge.carrier),
               edge.in_ring ? "ring " : "naive", edge.reason);
  }
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app("Shows the machine, the ring's order, and how each edge is carried and why.",
               "rondo-topo");
  app.add_option("--ranks", options.ranks, "a group of N ranks in this process, without mpirun")
      ->check(CLI::Range(1, 1024));
  const std::map<std::string, CarrierChoice> carriers = {
      {"auto", CarrierChoice::automatic}, {"shm", CarrierChoice::shm}, {"mpi", CarrierChoice::mpi}};
  app.add_option("--carrier", options.carrier, "auto, shm or mpi")
      ->transform(CLI::CheckedTransformer(carriers));
  app.set_version_flag("--version", RONDO_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

}  // namespace rondo::topo

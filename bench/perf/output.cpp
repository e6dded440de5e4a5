#include "bench/perf/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace rondo::perf {
namespace {

double gbps(const Row& row, const Timing& timing) {
  return timing.median_us <= 0 ? 0 : static_cast<double>(row.bytes) / timing.median_us * 1e-3;
}

std::string carriers(const Topology& topology) {
  int shm = 0;
  int mpi = 0;
  for (const Edge& edge : topology.edges) {
    if (edge.in_ring) ++(edge.carrier == Carrier::shm ? shm : mpi);
  }
  return fmt::format("ring edges: {} shm, {} mpi", shm, mpi);
}

}  // namespace

void print_header(const Options& options, const Communicator& comm) {
  fmt::print(
      "# {} of {}, {}, {} ranks; times are medians of the slowest rank's, in us; gbps are "
      "10^9 bytes a second\n",
      name(options.op), name(options.type), name(options.redop), comm.size());
  fmt::print("#{:>11} {:>11} {:>5} {:>5} {:>4} {:>6}   {:^38}   {:^38}\n", "", "", "", "", "", "",
             "out of place", "in place");
  fmt::print(
      "#{:>11} {:>11} {:>5} {:>5} {:>4} {:>6}   {:>11} {:>8} {:>8} {:>8}   {:>11} {:>8} "
      "{:>8} {:>8}\n",
      "size", "count", "type", "redop", "root", "algo", "time", "algbw", "busbw", "#wrong", "time",
      "algbw", "busbw", "#wrong");
  std::fflush(stdout);
}

void print_row(const Options& options, const Row& row, int ranks) {
  const bool rooted = options.op == Collective::broadcast || options.op == Collective::reduce;
  fmt::print(" {:>11} {:>11} {:>5} {:>5} {:>4} {:>6}", row.bytes, row.count, name(options.type),
             name(options.redop), rooted ? 0 : -1, row.algo);
  for (const std::optional<Timing>& form : {std::optional(row.out_of_place), row.in_place}) {
    if (!form) {
      fmt::print("   {:>11} {:>8} {:>8} {:>8}", "-", "-", "-", "-");
      continue;
    }
    const Timing& timing = *form;
    const double algbw = gbps(row, timing);
    fmt::print("   {:>11.2f} {:>8.2f} {:>8.2f} {:>8}", timing.median_us, algbw,
               algbw * bus_factor(options.op, ranks), timing.wrong);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

void print_summary(const Communicator& comm, const std::vector<Row>& rows) {
  const Machine machine = this_machine();
  fmt::print("# {} wrong elements; host {}, {} cores, L2 {} KiB, L3 {} KiB ({}); {}\n",
             wrong_elements(rows), machine.host, machine.cores, machine.l2_bytes / 1024,
             machine.l3_bytes / 1024, machine.source, carriers(comm.topology()));
}

void write_json(const Options& options, const std::vector<Row>& rows, int ranks) {
  const Machine machine = this_machine();
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    for (const bool in_place : {false, true}) {
      if (in_place && !row.in_place) continue;
      const Timing& timing = in_place ? *row.in_place : row.out_of_place;
      list.push_back({{"op", name(options.op)},
                      {"algo", row.algo},
                      {"bytes", row.bytes},
                      {"count", row.count},
                      {"dtype", name(options.type)},
                      {"redop", name(options.redop)},
                      {"ranks", ranks},
                      {"in_place", in_place},
                      {"time_us_min", timing.min_us},
                      {"time_us_median", timing.median_us},
                      {"time_us_p99", timing.p99_us},
                      {"algbw_gbps", gbps(row, timing)},
                      {"busbw_gbps", gbps(row, timing) * bus_factor(options.op, ranks)},
                      {"wrong", timing.wrong}});
    }
  }
  const nlohmann::json all = {{"machine",
                               {{"host", machine.host},
                                {"cores", machine.cores},
                                {"numa_nodes", machine.numa_nodes},
                                {"l2_bytes", machine.l2_bytes},
                                {"l3_bytes", machine.l3_bytes}}},
                              {"config",
                               {{"iterations", options.iterations},
                                {"warmups", options.warmups},
                                {"one_process", options.ranks > 0}}},
                              {"rows", list}};
  std::ofstream out(options.json);
  out << all.dump(2) << '\n';
  out.close();
  if (!out) throw std::runtime_error(fmt::format("cannot write {}", options.json));
}

}  // namespace rondo::perf

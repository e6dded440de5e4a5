#include "bench/perf/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/collective_traits.hpp"
#include "bench/perf/peers.hpp"
#include "tools/launch/write_file.hpp"

namespace rondo::perf {
namespace {

// Where ranks compute between calls, a few late calls of each decide how long all take.
double printed_us(const Options& options, const Timing& timing) {
  return options.compute_us > 0 ? timing.mean_us : timing.median_us;
}

double gbps(const Row& row, double us) {
  return us <= 0 ? 0 : static_cast<double>(row.bytes) / us * 1e-3;
}

std::string carriers(const Topology& topology, bool in_ring) {
  std::array<int, kCarrierCount> edges{};
  for (const Edge& edge : topology.edges) {
    if (edge.in_ring == in_ring) ++edges[static_cast<std::size_t>(edge.carrier)];
  }
  std::string text;
  for (int i = 0; i < kCarrierCount; ++i) {
    const int count = edges[static_cast<std::size_t>(i)];
    if (count > 0) text += fmt::format(" {} {}", count, name(static_cast<Carrier>(i)));
  }
  return text;
}

// "ring edges: 3 shm 1 mpi; off-ring: 2 mpi"
std::string carriers(const Topology& topology) {
  const std::string others = carriers(topology, false);
  return "ring edges:" + carriers(topology, true) + (others.empty() ? "" : "; off-ring:" + others);
}

// "; GPU 0 (...) for ranks 0 1"
std::string devices(const Topology& topology) {
  std::map<std::string, std::string> ranks;
  for (std::size_t rank = 0; rank < topology.places.size(); ++rank) {
    const RankPlace& place = topology.places[rank];
    if (!place.device.empty()) ranks[place.device] += fmt::format(" {}", rank);
  }
  std::string text;
  for (const auto& [device, of] : ranks) text += fmt::format("; {} for ranks{}", device, of);
  return text;
}

std::size_t algo_width(const Options& options) {
  std::size_t width = 6;
  for (const std::string& algo : options.algos) width = std::max(width, algo.size());
  return width;
}

// "; auto: one_shot from 4 bytes, ring from 65536"
std::string choices(const std::vector<Row>& rows) {
  std::string text;
  std::string last;
  for (const Row& row : rows) {
    if (row.algo != "auto" || row.used == last) continue;
    text += fmt::format("{} {} from {} bytes", text.empty() ? "; auto:" : ",", row.used, row.bytes);
    last = row.used;
  }
  return text;
}

}  // namespace

void print_header(const Options& options, int ranks) {
  fmt::print(
      "# {} of {}{}, {} rank{}; times are {}, in us; algbw: size over "
      "time, in 10^9 bytes a second; busbw: algbw times {:.4g}, what each link carries in a ring\n",
      name(options.op), name(options.type),
      detail::reduces(options.op) ? fmt::format(", {}", name(options.redop)) : std::string(), ranks,
      ranks == 1 ? "" : "s",
      options.compute_us > 0 ? "means of all calls, on the slowest rank"
                             : "medians of the slowest rank's",
      bus_factor(options.op, ranks));
  const std::size_t width = algo_width(options);
  const std::string use = options.use ? fmt::format(" {:>11}", "use") : std::string();
  const std::string columns =
      fmt::format("{:>11}{} {:>8} {:>8} {:>8}", "time", use, "algbw", "busbw", "#wrong");
  fmt::print("#{:>11} {:>11} {:>5} {:>5} {:>4} {:>{}}   {:^{}}   {:^{}}\n", "", "", "", "", "", "",
             width, "out of place", columns.size(), "in place", columns.size());
  fmt::print("#{:>11} {:>11} {:>5} {:>5} {:>4} {:>{}}   {}   {}\n", "size", "count", "type",
             "redop", "root", "algo", width, columns, columns);
  std::fflush(stdout);
}

void print_row(const Options& options, const Row& row, int ranks) {
  fmt::print(" {:>11} {:>11} {:>5} {:>5} {:>4} {:>{}}", row.bytes, row.count, name(options.type),
             detail::reduces(options.op) ? name(options.redop) : "-",
             detail::has_root(options.op) ? "0" : "-", row.algo, algo_width(options));
  for (const std::optional<Timing>& form : {std::optional(row.out_of_place), row.in_place}) {
    if (!form) {
      fmt::print("   {:>11}{} {:>8} {:>8} {:>8}", "-",
                 options.use ? fmt::format(" {:>11}", "-") : std::string(), "-", "-", "-");
      continue;
    }
    const Timing& timing = *form;
    const double us = printed_us(options, timing);
    const double algbw = gbps(row, us);
    fmt::print("   {:>11.2f}{} {:>8.2f} {:>8.2f} {:>8}", us,
               options.use ? fmt::format(" {:>11.2f}", timing.use_us) : std::string(), algbw,
               algbw * bus_factor(options.op, ranks), timing.wrong);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

void print_summary(const Topology& topology, const std::vector<Row>& rows) {
  const Machine machine = this_machine();
  fmt::print("# {} wrong elements; host {}, {} cores, L2 {} KiB, L3 {} KiB ({}); {}{}{}\n",
             wrong_elements(rows), machine.host, machine.cores, machine.l2_bytes / 1024,
             machine.l3_bytes / 1024, machine.source, carriers(topology), choices(rows),
             devices(topology));
}

void write_json(const Options& options, const Topology& topology, const std::vector<Row>& rows,
                int ranks) {
  const Machine machine = this_machine();
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    for (const bool in_place : {false, true}) {
      if (in_place && !row.in_place) continue;
      const Timing& timing = in_place ? *row.in_place : row.out_of_place;
      list.push_back(
          {{"op", name(options.op)},
           {"algo", row.algo},
           {"used", row.used},
           {"bytes", row.bytes},
           {"count", row.count},
           {"dtype", name(options.type)},
           {"redop", name(options.redop)},
           {"ranks", ranks},
           {"in_place", in_place},
           {"time_us_min", timing.min_us},
           {"time_us_median", timing.median_us},
           {"time_us_p99", timing.p99_us},
           {"time_us_mean", timing.mean_us},
           {"algbw_gbps", gbps(row, printed_us(options, timing))},
           {"busbw_gbps", gbps(row, printed_us(options, timing)) * bus_factor(options.op, ranks)},
           {"wrong", timing.wrong}});
      if (options.use) list.back()["use_us_median"] = timing.use_us;
    }
  }
  nlohmann::json places = nlohmann::json::array();
  for (const RankPlace& place : topology.places) places.push_back(place.device);
  const nlohmann::json all = {{"machine",
                               {{"host", machine.host},
                                {"cores", machine.cores},
                                {"numa_nodes", machine.numa_nodes},
                                {"l2_bytes", machine.l2_bytes},
                                {"l3_bytes", machine.l3_bytes}}},
                              {"config",
                               {{"iterations", options.iterations},
                                {"warmups", options.warmups},
                                {"one_process", options.ranks > 0},
                                {"registered", options.registered},
                                {"fresh", options.fresh},
                                {"compute_us", options.compute_us},
                                {"devices", places},
                                {"mpi", mpi_library()},
                                {"carriers", carriers(topology)}}},
                              {"rows", list}};
  launch::write_file(options.json, all.dump(2) + "\n");
}

}  // namespace rondo::perf

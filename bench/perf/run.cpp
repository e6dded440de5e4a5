#include "bench/perf/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/perf/device_measure.hpp"
#include "bench/perf/output.hpp"
#include "bench/perf/progress_line.hpp"

namespace rondo::perf {
namespace {

// Of gather, scatter and all_to_all, the next count that has a part of the same size for each rank.
std::uint64_t in_parts(const Options& options, std::uint64_t count, int size) {
  const bool parts = options.op == Collective::gather || options.op == Collective::scatter ||
                     options.op == Collective::all_to_all;
  const auto ranks = static_cast<std::uint64_t>(size);
  return parts ? (count + ranks - 1) / ranks * ranks : count;
}

std::vector<std::uint64_t> counts(const Options& options, int size) {
  std::vector<std::uint64_t> result;
  double bytes = static_cast<double>(options.first_bytes);
  for (; bytes <= static_cast<double>(options.last_bytes); bytes *= options.factor) {
    const std::uint64_t count = in_parts(
        options, static_cast<std::uint64_t>(std::llround(bytes)) / size_of(options.type), size);
    if (result.empty() || result.back() != count) result.push_back(count);
    if (bytes < 1) break;
  }
  return result;
}

// Measures one row; every rank calls it with the same arguments.
using MeasureOne = std::function<std::optional<Row>(const std::string& algo, std::uint64_t count)>;

std::uint64_t measure_all(const Options& options, int rank, int size, const Topology& topology,
                          const MeasureOne& measure_one) {
  const bool prints = rank == 0;
  if (prints) print_header(options, size);
  std::vector<Row> rows;
  std::vector<std::string> skipped;
  const std::vector<std::uint64_t> sizes = counts(options, size);
  ProgressLine progress(prints, sizes.size() * options.algos.size());
  for (const std::uint64_t count : sizes) {
    for (const std::string& algo : options.algos) {
      progress.next(algo, count * size_of(options.type));
      const std::optional<Row> row = measure_one(algo, count);
      if (!row) {
        if (std::find(skipped.begin(), skipped.end(), algo) == skipped.end())
          skipped.push_back(algo);
        continue;
      }
      progress.clear();
      if (prints) print_row(options, *row, size);
      rows.push_back(*row);
    }
  }
  progress.clear();
  if (rows.empty()) {
    throw std::runtime_error(
        "nothing was measured: none of the algorithms is available for these ranks, this type and "
        "these sizes");
  }
  if (prints) {
    for (const std::string& algo : skipped) {
      fmt::print("# {} left out: not available for these ranks, this type or some of these sizes\n",
                 algo);
    }
    print_summary(topology, rows);
    if (!options.json.empty()) write_json(options, topology, rows, size);
  }
  return wrong_elements(rows);
}

}  // namespace

std::uint64_t run(Communicator comm, const Options& options, const Peers& peers) {
  const int rank = comm.rank();
  const int size = comm.size();
  if (options.on_devices) {
    cuda::Communicator devices = cuda::join(std::move(comm), options.devices);
    return measure_all(options, rank, size, devices.topology(),
                       [&](const std::string& algo, std::uint64_t count) {
                         return measure_on_device(devices, options, algo, count);
                       });
  }
  return measure_all(options, rank, size, comm.topology(),
                     [&](const std::string& algo, std::uint64_t count) -> std::optional<Row> {
                       const auto peer = peers.find(algo);
                       const bool theirs = algo == "mpi" || algo == "gloo" || algo == "sockets";
                       if (theirs && (peer == peers.end() || !peer->second)) return std::nullopt;
                       return measure(comm, options, algo, count, theirs ? peer->second : Peer{});
                     });
}

}  // namespace rondo::perf

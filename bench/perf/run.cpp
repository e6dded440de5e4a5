#include "bench/perf/run.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/perf/device_measure.hpp"
#include "bench/perf/output.hpp"

namespace rondo::perf {
namespace {

std::vector<std::uint64_t> counts(const Options& options) {
  std::vector<std::uint64_t> result;
  double bytes = static_cast<double>(options.first_bytes);
  for (; bytes <= static_cast<double>(options.last_bytes); bytes *= options.factor) {
    const auto count = static_cast<std::uint64_t>(std::llround(bytes)) / size_of(options.type);
    if (result.empty() || result.back() != count) result.push_back(count);
    if (bytes < 1) break;
  }
  return result;
}

}  // namespace

namespace {

// What is measured: a function that every rank calls alike.
using MeasureOne = std::function<std::optional<Row>(const std::string& algo, std::uint64_t count)>;

std::uint64_t measure_all(const Options& options, int rank, int size, const Topology& topology,
                          const MeasureOne& measure_one) {
  const bool prints = rank == 0;
  if (prints) print_header(options, size);
  std::vector<Row> rows;
  std::vector<std::string> skipped;
  for (const std::uint64_t count : counts(options)) {
    for (const std::string& algo : options.algos) {
      const std::optional<Row> row = measure_one(algo, count);
      if (!row) {
        if (std::find(skipped.begin(), skipped.end(), algo) == skipped.end())
          skipped.push_back(algo);
        continue;
      }
      if (prints) print_row(options, *row, size);
      rows.push_back(*row);
    }
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

std::uint64_t run(Communicator comm, const Options& options, const Peer& mpi) {
  const int rank = comm.rank();
  const int size = comm.size();
  if (options.on_devices) {
    cuda::Communicator devices = cuda::join(std::move(comm), {.device = cuda::kSpreadOverDevices});
    return measure_all(options, rank, size, devices.topology(),
                       [&](const std::string& algo, std::uint64_t count) {
                         return measure_on_device(devices, options, algo, count);
                       });
  }
  return measure_all(options, rank, size, comm.topology(),
                     [&](const std::string& algo, std::uint64_t count) -> std::optional<Row> {
                       const bool theirs = algo == "mpi";
                       if (theirs && !mpi) return std::nullopt;
                       return measure(comm, options, algo, count, theirs ? mpi : Peer{});
                     });
}

std::uint64_t run_local_group(const Options& options) {
  std::vector<Communicator> group = local_group(options.ranks);
  std::vector<std::exception_ptr> errors(group.size());
  std::atomic<std::uint64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < group.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        // On the way out of a failure, a communicator tells the other ranks.
        const std::uint64_t mine = run(std::move(group[i]), options, {});
        if (i == 0) wrong = mine;
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return wrong;
}

std::uint64_t run_processes_of_this_host(const Options& options) {
  std::string folder = (std::filesystem::temp_directory_path() / "rondo-perf-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make " + folder);
  std::vector<pid_t> children;
  for (int rank = 0; rank < options.processes; ++rank) {
    const pid_t child = ::fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    int code = 2;
    try {
      const std::string socket = folder + "/socket";
      code = run(from_socket(socket, rank, options.processes), options, {}) == 0 ? 0 : 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rondo-perf: rank %d: %s\n", rank, error.what());
    }
    std::fflush(stdout);
    ::_exit(code);
  }
  std::uint64_t bad = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    bad += status == 0 ? 0 : 1;
  }
  std::filesystem::remove_all(folder);
  return bad;
}

}  // namespace rondo::perf

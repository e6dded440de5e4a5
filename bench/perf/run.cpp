#include "bench/perf/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <thread>
#include <vector>

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

std::uint64_t run(Communicator& comm, const Options& options, const Peer& mpi) {
  const bool prints = comm.rank() == 0;
  if (prints) print_header(options, comm);
  std::vector<Row> rows;
  std::vector<std::string> skipped;
  for (const std::uint64_t count : counts(options)) {
    for (const std::string& algo : options.algos) {
      const bool theirs = algo == "mpi";
      const std::optional<Row> row =
          theirs && !mpi ? std::nullopt
                         : measure(comm, options, algo, count, theirs ? mpi : Peer{});
      if (!row) {
        if (std::find(skipped.begin(), skipped.end(), algo) == skipped.end())
          skipped.push_back(algo);
        continue;
      }
      if (prints) print_row(options, *row, comm.size());
      rows.push_back(*row);
    }
  }
  if (prints) {
    for (const std::string& algo : skipped) {
      fmt::print("# {} left out: not available for these ranks, this type or some of these sizes\n",
                 algo);
    }
    print_summary(comm, rows);
    if (!options.json.empty()) write_json(options, rows, comm.size());
  }
  return wrong_elements(rows);
}

std::uint64_t run_local_group(const Options& options) {
  std::vector<Communicator> group = local_group(options.ranks);
  std::vector<std::exception_ptr> errors(group.size());
  std::atomic<std::uint64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < group.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        const std::uint64_t mine = run(group[i], options, {});
        if (i == 0) wrong = mine;
      } catch (...) {
        errors[i] = std::current_exception();
        group[i].abort("rondo-perf failed on this rank");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return wrong;
}

}  // namespace rondo::perf

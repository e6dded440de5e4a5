#include "adapters/mpi/summary.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace rondo::mpi_programs {
namespace {

constexpr const char* kNames[kFunctions] = {"MPI_Allreduce",
                                            "MPI_Iallreduce",
                                            "MPI_Reduce",
                                            "MPI_Reduce_scatter",
                                            "MPI_Reduce_scatter_block",
                                            "MPI_Bcast",
                                            "MPI_Allgather",
                                            "MPI_Allgatherv",
                                            "MPI_Gather",
                                            "MPI_Gatherv",
                                            "MPI_Scatter",
                                            "MPI_Scatterv",
                                            "MPI_Alltoall",
                                            "MPI_Alltoallv",
                                            "MPI_Barrier"};

bool is_wanted() {
  const char* const value = std::getenv("RONDO_MPI_SUMMARY");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace

Summary::Summary() : wanted_(is_wanted()) {}

Summary& Summary::of_process() {
  static auto* const summary = new Summary();  // threads of the program may outlive main()
  return *summary;
}

void Summary::note(Function function, bool by_rondo, std::size_t bytes,
                   std::chrono::steady_clock::duration took) {
  Line& line = lines_[static_cast<std::size_t>(function)];
  Counts& counts = by_rondo ? line.by_rondo : line.handed_on;
  counts.calls.fetch_add(1, std::memory_order_relaxed);
  counts.bytes.fetch_add(bytes, std::memory_order_relaxed);
  counts.ns.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count(),
                      std::memory_order_relaxed);
}

void Summary::note_given_up(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (given_up_.empty()) given_up_ = why;
}

void Summary::print() const {
  std::fprintf(stderr, "rondo: calls of rank 0%25s%37s\n", "by Rondo", "handed on to MPI");
  std::fprintf(stderr, "%-26s%12s%14s%10s%12s%14s%10s\n", "", "calls", "bytes", "s", "calls",
               "bytes", "s");
  for (int i = 0; i < kFunctions; ++i) {
    const Line& line = lines_[i];
    const auto calls = line.by_rondo.calls.load() + line.handed_on.calls.load();
    if (calls == 0) continue;
    std::fprintf(stderr, "%-26s", kNames[i]);
    for (const Counts* counts : {&line.by_rondo, &line.handed_on}) {
      std::fprintf(stderr, "%12llu%14llu%10.3f",
                   static_cast<unsigned long long>(counts->calls.load()),
                   static_cast<unsigned long long>(counts->bytes.load()),
                   1e-9 * static_cast<double>(counts->ns.load()));
    }
    std::fprintf(stderr, "\n");
  }
  const std::lock_guard lock(mutex_);
  if (!given_up_.empty()) {
    std::fprintf(stderr, "rondo: at least one communicator was left to MPI: %s\n",
                 given_up_.c_str());
  }
}

}  // namespace rondo::mpi_programs

// Which algorithm to use for which call: a small table, compiled in or read from the file that
// RONDO_TUNING names; rondo-perf --tune measures and writes such a file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/types.hpp>

#include "base/index.hpp"

namespace rondo::detail {

// What the ranks of a call have in common: they reach each other's buffers, or only memory that
// they share; or an edge of the ring leaves the shared memory: `hosts` if hosts of several ranks
// share memory inside, else `network`.
enum class Route : std::uint8_t { buffers, memory, network, hosts };
// "buffers", "shm", "mpi", "hosts": as rules name it.
std::string_view name(Route route);

struct TuningRule {
  Route route = Route::memory;
  Algorithm algorithm = Algorithm::ring;
  std::int32_t ranks = 0;
  std::uint64_t from_bytes = 0;
};

// Which algorithm to use from which size on.
class AlgorithmBySize {
 public:
  void add(std::uint64_t from_bytes, Algorithm algorithm);
  // That of the largest `from_bytes` that is at most `bytes`; `ring` if there is none.
  [[nodiscard]] Algorithm at(std::uint64_t bytes) const;
  [[nodiscard]] bool empty() const { return by_size_.empty(); }

 private:
  struct FromSize {
    std::uint64_t from_bytes = 0;
    Algorithm algorithm = Algorithm::ring;
  };
  std::vector<FromSize> by_size_;  // ascending
};

// Fixed size: it travels as bytes.
struct Tuning {
  static constexpr std::size_t kMostRules = 128;

  std::array<TuningRule, kMostRules> rules{};
  std::size_t count = 0;

  // Takes the rules for `ranks`; if there are none, those for the next smaller number of ranks; if
  // none either, those for the smallest number. If there is no rule for `buffers` at all, takes
  // those for `shm`; if none for `hosts`, those for `mpi`.
  [[nodiscard]] AlgorithmBySize algorithms_for(Route route, int ranks) const;
};

// What the calls of a communicator look up.
struct Tuned {
  // `hosts`: between which `hierarchical` goes.
  Tuned(const Tuning& tuning, int ranks, int hosts);

  [[nodiscard]] Algorithm at(Route route, std::uint64_t bytes) const {
    return by_route[Index(route)].at(bytes);
  }

  std::array<AlgorithmBySize, 4> by_route;
  // Between the leaders of hosts, as among as many ranks. Built in, if a file has no rules for
  // `mpi`.
  AlgorithmBySize between_leaders;
};

// What was measured on the machine that docs/performance.md names, for 2 to 16 ranks; for more, the
// cost model.
Tuning default_tuning();

// Lines of "route ranks bytes algorithm", where `bytes` is the size from which on the algorithm is
// taken; empty lines and those that begin with # are left out, and at least one must remain. Throws
// UsageError with the line's number.
Tuning parse_tuning(const std::string& text, const std::string& file);

// Returns what RONDO_TUNING names, else the default. Throws UsageError.
Tuning load_tuning();

}  // namespace rondo::detail

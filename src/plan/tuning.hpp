// Which algorithm to use for which call: a small table, compiled in or read from the file that
// RONDO_TUNING names; rondo-perf --tune measures and writes such a file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/types.hpp>

#include "base/index.hpp"
#include "plan/by_size.hpp"
#include "plan/model_table.hpp"

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

// Which algorithm to use from which size on; where it has no rule, `ring` is used.
using AlgorithmBySize = BySize<Algorithm>;

// Fixed size: it travels as bytes.
struct Tuning {
  static constexpr std::size_t kMostRules = 128;

  std::array<TuningRule, kMostRules> rules{};
  std::size_t count = 0;

  // Takes the rules for `ranks`; if there are none, those for the next smaller number of ranks; if
  // none either, those for the smallest number. If there is no rule for `buffers` at all, takes
  // those for `shm`; if none for `hosts`, those for `mpi`. Returns nothing if there are none of
  // these either.
  [[nodiscard]] AlgorithmBySize algorithms_for(Route route, int ranks) const;
};

// What the calls of a communicator look up: in memory, rules that were measured; between hosts, the
// model. A file's rules, which were measured with all_reduces, replace both; those for `mpi` and
// `hosts` for all_reduces and barriers alone.
struct Tuned {
  // `between_hosts`: nothing if shared memory carries all.
  Tuned(const Tuning& tuning, int ranks, const std::optional<CostPlace>& between_hosts);

  [[nodiscard]] Algorithm at(Route route, Collective collective, std::uint64_t bytes) const;
  // How a hierarchical call goes between hosts.
  [[nodiscard]] BetweenHosts between_hosts(std::uint64_t bytes) const;

 private:
  std::array<AlgorithmBySize, 4> by_route_;
  AlgorithmBySize between_leaders_;  // of the rules for `mpi`, as among as many ranks
  std::optional<ModelTable> model_;
};

// What was measured in the memory of the machine that docs/performance.md names, for 2 to 16 ranks.
Tuning default_tuning();

// Lines of "route ranks bytes algorithm", where `bytes` is the size from which on the algorithm is
// taken; empty lines and those that begin with # are left out, and at least one must remain. Throws
// UsageError with the line's number.
Tuning parse_tuning(const std::string& text, const std::string& file);

// Returns what RONDO_TUNING names, else the default. Throws UsageError.
Tuning load_tuning();

}  // namespace rondo::detail

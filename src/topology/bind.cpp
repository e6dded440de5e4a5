// Chooses the core on which a thread that serves communication runs.

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <rondo/errors.hpp>
#include <rondo/thread_binding.hpp>

#include "base/time_slices.hpp"
#include "topology/machine.hpp"

#include "base/index.hpp"

namespace rondo {
namespace {

// The cores of a host in as many parts as it has ranks, and which part is this rank's. For ranks
// that are not bound to cores.
struct Share {
  std::size_t index = 0;
  std::size_t parts = 1;
};

Share share_of_host(const Topology& topology, int rank) {
  const RankPlace& mine = topology.places[detail::Index(rank)];
  Share share{0, 0};
  for (std::size_t other = 0; other < topology.places.size(); ++other) {
    if (!on_one_host(topology.places[other], mine)) continue;
    ++share.parts;
    if (other < static_cast<std::size_t>(rank)) ++share.index;
  }
  return share;
}

}  // namespace

std::string bind_beside_compute(const Topology& topology, int rank, std::optional<int> core) {
  detail::take_short_slices();
  if (core && *core < 0) return "any core, as asked";
  if (core) {
    if (!detail::bind_this_thread({*core})) {
      throw UsageError(fmt::format(
          "rank {}: its thread for communication cannot be bound to hardware thread {}: {}", rank,
          *core, std::strerror(errno)));
    }
    return fmt::format("hardware thread {}, as asked", *core);
  }
  const detail::UsableCores usable = detail::usable_cores();
  const Share all = share_of_host(topology, rank);
  if (usable.bound && all.parts > 1 && usable.cores.size() > 1) {
    return "any core that this rank is bound to, since others may be bound to the same";
  }
  const Share share = usable.bound ? Share{} : all;
  const std::size_t mine = usable.cores.size() / share.parts;
  if (mine < 2) return "no core of its own: this rank has one core or less";
  const std::vector<int>& last = usable.cores[(share.index + 1) * mine - 1];
  if (!detail::bind_this_thread(last)) return fmt::format("any core: {}", std::strerror(errno));
  return fmt::format("the core of hardware thread {}, the last of this rank's {} cores",
                     last.front(), mine);
}

}  // namespace rondo

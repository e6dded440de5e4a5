#include "plan/model_table.hpp"

#include <span>

#include "base/collective_traits.hpp"

namespace rondo::detail {
namespace {

constexpr std::uint64_t kSmallest = 4;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 30U;

// A tree's sums need memory for the whole vector, which a rank may lack: `auto` takes it for
// reductions up to this size.
constexpr std::uint64_t kMostSummedByTree = std::uint64_t{16} << 20U;

// What may carry the collective. `naive` only where no rank needs memory for it.
std::span<const Algorithm> candidates(Collective collective) {
  static constexpr Algorithm kForAllReduces[] = {Algorithm::ring, Algorithm::recursive_doubling,
                                                 Algorithm::halving_doubling, Algorithm::naive};
  static constexpr Algorithm kForBarriers[] = {Algorithm::recursive_doubling, Algorithm::naive};
  static constexpr Algorithm kForBroadcasts[] = {Algorithm::ring, Algorithm::tree,
                                                 Algorithm::naive};
  static constexpr Algorithm kForOthers[] = {Algorithm::ring, Algorithm::tree};
  switch (collective) {
    case Collective::all_reduce:
      return kForAllReduces;
    case Collective::barrier:
      return kForBarriers;
    case Collective::broadcast:
      return kForBroadcasts;
    default:
      return kForOthers;
  }
}

constexpr BetweenHosts kWaysBetweenHosts[] = {
    {Algorithm::recursive_doubling, false},
    {Algorithm::halving_doubling, false},
    {Algorithm::naive, false},
    {Algorithm::ring, true},
    {Algorithm::halving_doubling, true},
};

constexpr std::uint64_t kNever = std::uint64_t{1} << 62U;

// A candidate takes the place of those before it, of which the first are the most usual ones, if it
// costs less than this part of what they do, in percent.
constexpr std::uint64_t kGainPercent = 97;

// Two sizes for each power of two.
template <class Visit>
void for_each_size(Visit&& visit) {
  visit(0, kSmallest);
  for (std::uint64_t bytes = 2 * kSmallest; bytes <= kLargest; bytes *= 2) {
    visit(bytes - bytes / 4, bytes - bytes / 4);
    visit(bytes, bytes);
  }
}

template <class T, class Cost>
void fill(BySize<T>& table, std::span<const T> candidates, const Cost& cost) {
  for_each_size([&](std::uint64_t from_bytes, std::uint64_t bytes) {
    T best = candidates[0];
    std::uint64_t best_ns = cost(best, bytes);
    for (const T& one : candidates.subspan(1)) {
      const std::uint64_t ns = cost(one, bytes);
      if (ns < best_ns / 100 * kGainPercent) {
        best = one;
        best_ns = ns;
      }
    }
    if (table.empty() || table.at(from_bytes) != best) table.add(from_bytes, best);
  });
}

}  // namespace

ModelTable::ModelTable(const CostPlace& place) {
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
        Collective::broadcast, Collective::reduce, Collective::barrier}) {
    fill(by_collective_[Index(collective)], candidates(collective),
         [&](Algorithm algorithm, std::uint64_t bytes) {
           const bool too_large =
               algorithm == Algorithm::tree && reduces(collective) && bytes > kMostSummedByTree;
           return too_large ? kNever : cost_ns(collective, algorithm, bytes, place);
         });
  }
  fill(between_hosts_, std::span<const BetweenHosts>(kWaysBetweenHosts),
       [&](const BetweenHosts& between, std::uint64_t bytes) {
         return cost_ns(between, bytes, place);
       });
}

}  // namespace rondo::detail

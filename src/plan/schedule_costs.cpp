#include "plan/schedule_costs.hpp"

#include <algorithm>
#include <bit>

#include "schedule/schedule.hpp"

namespace rondo::detail {
namespace {

std::uint64_t count(int number) { return static_cast<std::uint64_t>(number); }

bool has_pairs(int ranks) { return !std::has_single_bit(static_cast<unsigned>(ranks)); }

// Pairs are formed of the first positions. If at most half of the ranks that take part do so for a
// pair, they exchange with the other half in the last round. Then no message waits both for the
// first one of a pair, at the beginning, and for the second one, at the end.
bool pairs_in_one_half(int ranks) {
  const int taking_part = 1 << rounds_down(ranks);
  return 2 * (ranks - taking_part) <= taking_part;
}

// Of so many hops that follow one another round a ring, how many leave a host.
std::uint64_t crossings(std::uint64_t hops, const CostPlace& place) {
  return divided_up(hops * count(place.hosts), count(place.ranks));
}

// Visits the exchanges of a rank that takes part: of how many bytes, and whether they are added.
template <class Visit>
void for_each_exchange(std::uint64_t bytes, int ranks, int halvings, const Visit& visit) {
  for (int round = 0; round < rounds_down(ranks); ++round) {
    const bool halves = round < halvings;
    if (halves) bytes = divided_up(bytes, 2);
    visit(bytes, true);
    if (halves) visit(bytes, false);
  }
}

}  // namespace

int rounds_down(int ranks) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks))) - 1;
}
int rounds_up(int ranks) {
  return ranks <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<unsigned>(ranks) - 1));
}

std::uint64_t by_ring(Collective collective, std::uint64_t bytes, const CostPlace& place,
                      const EdgeCosts& edges) {
  const std::uint64_t hops = count(place.ranks) - 1;
  const std::uint64_t chunk = divided_up(bytes, count(place.ranks));
  switch (collective) {
    case Collective::all_reduce:
      return edges.passed_on({hops, hops, crossings(2 * hops, place)}, chunk);
    case Collective::all_gather:
      return edges.passed_on({0, hops, crossings(hops, place)}, chunk);
    case Collective::reduce_scatter:
      return edges.passed_on({hops, 0, crossings(hops, place)}, chunk);
    default: {  // a chain, which slices enter one after the other
      const bool reduces = collective == Collective::reduce;
      return edges.sent(bytes, reduces) + times(hops - 1, edges.slice_passed_on(bytes, reduces)) +
             times(count(place.hosts) - 2, edges.latency());
    }
  }
}

std::uint64_t by_naive(Collective collective, std::uint64_t bytes, int ranks,
                       const EdgeCosts& edges, Calls calls) {
  const std::uint64_t others = count(ranks) - 1;
  const std::uint64_t windows = edges.windows(bytes);
  const std::uint64_t window = divided_up(bytes, windows);
  const std::uint64_t on_link = edges.on_link(window);
  const std::uint64_t to_all = times(others, std::max(edges.to_send(window), on_link));
  const std::uint64_t there_and_back = edges.of_one_and_back(window, others);
  if (collective == Collective::broadcast) {  // the root sends to the first rank
    return edges.sent(bytes, false) + times(windows, to_all) + there_and_back / 2 +
           edges.answered(bytes);
  }
  // The first rank's link carries the sums of one call away while the next call's vectors come.
  if (edges.share_cores() && calls == Calls::overlap) {
    return times(windows, std::max(times(count(ranks), on_link), there_and_back));
  }
  const std::uint64_t from_all = times(others, std::max(edges.to_receive(window, true), on_link));
  // The next vectors come when the rank that has got its sum first has sent its next one.
  const std::uint64_t until_next = std::max(times(others, edges.to_send(window)), there_and_back);
  return times(windows,
               from_all + (calls == Calls::overlap ? until_next : to_all + 2 * edges.latency()));
}

std::uint64_t by_recursive_doubling(std::uint64_t bytes, int ranks, const EdgeCosts& edges) {
  const std::uint64_t rounds = count(rounds_down(ranks));
  const std::uint64_t ns = edges.answered(bytes) + edges.partners_run(rounds);
  if (!has_pairs(ranks)) return ns + edges.passed_on({rounds, 0, rounds}, bytes);
  // Slices go on through pairs, too.
  const std::uint64_t hops = rounds + (pairs_in_one_half(ranks) ? 1 : 2);
  return ns + edges.passed_on({rounds + 1, 1, hops}, bytes);
}

std::uint64_t by_halving_doubling(std::uint64_t bytes, int ranks, int halvings,
                                  const EdgeCosts& edges) {
  std::uint64_t ns = edges.answered(bytes);
  if (has_pairs(ranks)) {
    ns += edges.sent(bytes, true) + edges.sent(bytes, false) -
          (pairs_in_one_half(ranks) ? edges.latency() : 0);
  }
  for_each_exchange(bytes, ranks, halvings, [&](std::uint64_t exchanged, bool reduces) {
    ns += edges.exchanged(exchanged, reduces);
  });
  return ns;
}

HalvedBytes bytes_by_halving(std::uint64_t bytes, int ranks, int halvings) {
  HalvedBytes sent;
  if (has_pairs(ranks)) sent = {bytes, bytes};
  for_each_exchange(bytes, ranks, halvings, [&](std::uint64_t exchanged, bool /*reduces*/) {
    if (sent.all == 0) sent.first = exchanged;
    sent.all += exchanged;
  });
  return sent;
}

std::uint64_t by_tree(Collective collective, std::uint64_t bytes, const CostPlace& place) {
  const std::uint64_t rounds = count(rounds_up(place.ranks));
  if (collective == Collective::broadcast || collective == Collective::reduce) {
    const EdgeCosts edges(place, place.trees);
    const bool reduces = collective == Collective::reduce;
    // No position is further from the root than this. The root has a child for each round.
    const std::uint64_t height = count(rounds_down(place.ranks));
    const std::uint64_t far = count(std::max(rounds_down(place.hosts), 1)) - 1;
    const std::uint64_t to_farthest = edges.sent(bytes, reduces) + times(far, edges.latency()) +
                                      times(height - 1, edges.slice_passed_on(bytes, reduces));
    const std::uint64_t at_root =
        edges.latency() +
        times(rounds, std::max(edges.on_link(bytes), edges.to_receive(bytes, reduces)));
    // In a broadcast greetings go back.
    const std::uint64_t back =
        reduces ? 0 : times(height, 2 * edges.to_send(0)) + times(far + 1, edges.latency());
    return std::max(to_farthest, at_root) + edges.answered(bytes) + back;
  }
  CostPlace shared = place;  // all ranks of a host send at once
  shared.link.ps_per_byte *= count(place.ranks_per_host());
  const EdgeCosts edges(shared, place.trees, tree::window_for_pieces(place.trees.slots));
  const bool reduces = collective == Collective::reduce_scatter;
  const std::uint64_t chunk = divided_up(bytes, count(place.ranks));
  std::uint64_t ns = reduces ? edges.to_send(bytes) : 0;  // through scratch memory
  for (int round = 0; round < rounds_up(place.ranks); ++round) {
    const std::uint64_t chunks = count(tree::chunks_in_round(round, place.ranks));
    // Where chunks go round the end of the vector, there is one slice more.
    ns += edges.exchanged(chunks * chunk, reduces) + edges.to_send(0);
  }
  return ns;
}

}  // namespace rondo::detail

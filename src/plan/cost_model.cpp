#include "plan/cost_model.hpp"

#include <algorithm>
#include <bit>

#include "plan/schedule_costs.hpp"

namespace rondo::detail {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

std::uint64_t count(int number) { return static_cast<std::uint64_t>(number); }

// A step of the ring between hosts carries so many bytes of all owners of a host together, if the
// call has that many: a smaller step makes ranks wait more often, a greater one leaves the network
// idle for longer at the first and the last piece.
constexpr std::uint64_t kStepBytes = std::uint64_t{512} << 10U;
constexpr std::uint64_t kLeastStepBytes = std::uint64_t{256} << 10U;
// A call has so many pieces, if their steps are not too small for that.
constexpr std::uint64_t kPieces = 4;
// Of a piece that goes by halving_doubling.
constexpr std::uint64_t kLeastHalvedBytes = std::uint64_t{256} << 10U;

// What the ranks of a host do with a vector, before or after it goes between hosts.
std::uint64_t inside_ns(std::uint64_t bytes, int owners, const CostPlace& place, bool reduces) {
  const std::uint64_t others = count(place.ranks_per_host()) - 1;
  const std::uint64_t share = divided_up(bytes, count(owners));
  const std::uint64_t ps = reduces ? place.work.reduce_ps_per_byte : place.work.copy_ps_per_byte;
  return place.work.slice_ns + share * others * ps / kPsPerNs;
}

std::uint64_t inside_ns(std::uint64_t bytes, int owners, const CostPlace& place) {
  return inside_ns(bytes, owners, place, true) + inside_ns(bytes, owners, place, false);
}

// Where kStepBytes take a link less than four times its latency, a step carries as many bytes as
// the link in eight times its latency. That is rounded up to a power of two, so that runs seldom
// differ in the order of their additions although the link is measured anew. 0 for other links.
std::uint64_t step_bytes_of_far_link(const LinkCosts& link) {
  constexpr std::uint64_t kMost = std::uint64_t{16} << 20U;
  const std::uint64_t bytes = 8 * link.latency_ns * kPsPerNs / link.ps_per_byte;
  return bytes <= 2 * kStepBytes ? 0 : std::bit_ceil(std::min(bytes, kMost));
}

std::uint64_t ring_piece_bytes(std::uint64_t bytes, int hosts, const LinkCosts& link) {
  const std::uint64_t far = count(hosts) * step_bytes_of_far_link(link);
  if (far > 0) return far;
  return std::min(count(hosts) * kStepBytes,
                  std::max(bytes / kPieces, count(hosts) * kLeastStepBytes));
}

// With p pieces the hops come p times, and of what is done inside all except 1/p is hidden.
std::uint64_t halved_piece_bytes(std::uint64_t bytes, int hosts, int owners,
                                 const LinkCosts& link) {
  CostPlace place;
  place.ranks = hosts * owners;
  place.hosts = hosts;
  const std::uint64_t hops_ns =
      2 * count(rounds_up(hosts)) * (link.latency_ns + 2 * place.work.slice_ns);
  const std::uint64_t inside = inside_ns(bytes, owners, place);
  std::uint64_t pieces = 1;
  while (pieces * (pieces + 1) * hops_ns < inside && bytes / (pieces + 1) >= kLeastHalvedBytes) {
    ++pieces;
  }
  return divided_up(bytes, pieces);
}

// One piece of `bytes`, of which each owner of a host has a part, along all rails.
std::uint64_t along_rails_ns(Algorithm algorithm, std::uint64_t bytes, const CostPlace& place) {
  const std::uint64_t rails = count(place.rails);
  const std::uint64_t part = divided_up(bytes, rails);
  CostPlace rail = place;
  rail.ranks = rail.hosts;
  const bool by_halves = algorithm == Algorithm::halving_doubling;
  const FifoGeometry& fifo = by_halves ? place.off_ring : place.ring;
  const EdgeCosts edges(place, fifo, window_for(fifo.slots), place.rails - 1);
  std::uint64_t alone_ns = 0;
  HalvedBytes sent;
  if (by_halves) {
    const int halvings = halvings_that_pay(part, place.hosts, place.link, place.work, place.rails);
    alone_ns = by_halving_doubling(part, place.hosts, halvings, edges);
    sent = bytes_by_halving(part, place.hosts, halvings);
  } else {
    const std::uint64_t chunk = divided_up(part, count(place.hosts));
    alone_ns = by_ring(Collective::all_reduce, part, rail, edges);
    sent = {chunk, 2 * (count(place.hosts) - 1) * chunk};
  }
  // The last rail begins when the first messages of the others have left. Then the messages of the
  // rails fill each other's waits, until the link is busy all the time.
  return std::max(alone_ns + times(rails - 1, edges.on_link(sent.first)),
                  times(rails, edges.on_link(sent.all)) + edges.latency());
}

}  // namespace

LinkCosts link_costs(const std::optional<LinkFacts>& link) {
  constexpr LinkFacts kUsual{30, 1250};
  // Limited while they are doubles: an integer may not hold what a broken measurement says.
  constexpr double kMostNs = 1e9;
  constexpr double kMostPs = 1e8;
  const LinkFacts facts = link && link->bytes_per_us > 0 ? *link : kUsual;
  const auto rounded = [](double value, double most) {
    const auto limited = static_cast<std::uint64_t>(std::clamp(value, 1.0, most));
    const std::uint64_t below = std::bit_floor(limited);
    // The middle of two powers of two, by their ratio, is 1.41 times the lower one.
    return 100 * limited >= 141 * below ? 2 * below : below;
  };
  return {rounded(facts.latency_us * 1e3, kMostNs), rounded(1e6 / facts.bytes_per_us, kMostPs)};
}

int halvings_that_pay(std::uint64_t bytes, int ranks, const LinkCosts& link, const WorkCosts& work,
                      int sharing) {
  CostPlace place;
  place.link = link;
  place.link.ps_per_byte *= count(sharing);
  place.work = work;
  // Of usual FIFOs: those of the communicator would hardly change the answer.
  const EdgeCosts edges(place, {std::uint64_t{32} << 10U, 64});
  int best = 0;
  std::uint64_t best_ns = by_halving_doubling(bytes, ranks, 0, edges);
  for (int halvings = 1; halvings <= rounds_down(ranks); ++halvings) {
    const std::uint64_t ns = by_halving_doubling(bytes, ranks, halvings, edges);
    if (ns > best_ns) break;  // and more halvings save less
    best = halvings;
    best_ns = ns;
  }
  return best;
}

std::uint64_t rail_piece_bytes(Algorithm algorithm, std::uint64_t bytes, int hosts, int owners,
                               const LinkCosts& link) {
  const std::uint64_t piece = algorithm == Algorithm::ring
                                  ? ring_piece_bytes(bytes, hosts, link)
                                  : halved_piece_bytes(bytes, hosts, owners, link);
  return divided_up(piece, kPageBytes) * kPageBytes;
}

std::uint64_t cost_ns(Collective collective, Algorithm algorithm, std::uint64_t bytes,
                      const CostPlace& place) {
  const EdgeCosts off_ring(place, place.off_ring);
  switch (algorithm) {
    case Algorithm::ring:
      return by_ring(collective, bytes, place, EdgeCosts(place, place.ring));
    case Algorithm::naive:
      return by_naive(collective, bytes, place.ranks, off_ring, Calls::overlap);
    case Algorithm::recursive_doubling:
      return by_recursive_doubling(bytes, place.ranks, off_ring);
    case Algorithm::halving_doubling:
      return by_halving_doubling(bytes, place.ranks,
                                 halvings_that_pay(bytes, place.ranks, place.link, place.work),
                                 off_ring);
    default:
      return by_tree(collective, bytes, place);
  }
}

std::uint64_t cost_ns(const BetweenHosts& between, std::uint64_t bytes, const CostPlace& place) {
  if (!between.along_rails) {
    const std::uint64_t inside = inside_ns(bytes, 1, place);
    if (between.algorithm == Algorithm::naive) {
      // The ranks of a host wait for each other in each call, so that calls hardly overlap.
      const EdgeCosts edges(place, place.off_ring);
      return inside + by_naive(Collective::all_reduce, bytes, place.hosts, edges, Calls::alone);
    }
    CostPlace leaders = place;
    leaders.ranks = place.hosts;
    return inside + cost_ns(Collective::all_reduce, between.algorithm, bytes, leaders);
  }
  const std::uint64_t inside = inside_ns(bytes, place.rails, place);
  const std::uint64_t piece =
      rail_piece_bytes(between.algorithm, bytes, place.hosts, place.rails, place.link);
  const std::uint64_t pieces = divided_up(bytes, piece);
  // The ring goes on from piece to piece without a pause; halving_doubling begins anew.
  const std::uint64_t rails =
      between.algorithm == Algorithm::ring
          ? along_rails_ns(between.algorithm, bytes, place)
          : times(pieces, along_rails_ns(between.algorithm, divided_up(bytes, pieces), place));
  // Inside the hosts all except a piece is hidden.
  return std::max(rails, inside) + inside / pieces;
}

}  // namespace rondo::detail

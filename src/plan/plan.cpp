#include "plan/plan.hpp"

#include <algorithm>
#include <cmath>

#include "base/collective_traits.hpp"
#include "base/index.hpp"
#include "plan/parts.hpp"

namespace rondo::detail {
namespace {

int position_of(const std::vector<int>& ring, int rank) {
  return static_cast<int>(std::find(ring.begin(), ring.end(), rank) - ring.begin());
}

// How many elements a chunk's border is a multiple of.
std::uint64_t granules(std::uint64_t granule_bytes, std::uint64_t element_bytes) {
  return std::max<std::uint64_t>(granule_bytes / element_bytes, 1);
}

// The borders of chunks of these sizes.
const std::uint64_t* set_borders(std::vector<std::uint64_t>& borders, const std::size_t* counts,
                                 std::uint64_t chunks) {
  borders[0] = 0;
  for (std::uint64_t i = 0; i < chunks; ++i) borders[i + 1] = borders[i] + counts[i];
  return borders.data();
}
std::uint64_t largest_of(const std::size_t* counts, std::uint64_t chunks) {
  return static_cast<std::uint64_t>(std::max_element(counts, counts + chunks) - counts);
}

// In all_to_all several ranks send to the same one, and share its wire. With much under way they
// fall out of step: some wires then carry the slices of two ranks, and others none. 8 MiB on 8 test
// hosts at 500 Mbit/s took 145 ms with 8 slices, 134 with 4, 128 with 2; on 4 hosts at 10 Gbit/s
// 23, 18 and 14 ms. Of two ranks each has a wire for itself.
constexpr std::uint64_t kSlicesOnSharedWires = 2;

const FifoGeometry& exchange_geometry(const RingPlace& place) {
  return place.pairwise[Index(PairwiseUse::exchanges)];
}

// How many slices to each of the others a rank must keep under way to fill its link.
std::uint64_t slices_that_fill(const LinkFacts& link, const RingPlace& place) {
  const double round_trip_bytes = 2 * link.latency_us * link.bytes_per_us;
  const double others = place.size - 1;
  return static_cast<std::uint64_t>(std::ceil(
      round_trip_bytes / (others * static_cast<double>(exchange_geometry(place).slot_bytes))));
}

std::uint64_t pairwise_window(const Schedule& schedule, const RingPlace& place) {
  const std::uint64_t widest = window_for(exchange_geometry(place).slots);
  const bool share_wires =
      schedule.collective == Collective::all_to_all && place.has_pump && place.size > 2;
  if (!share_wires) return widest;
  const std::uint64_t least = place.slowest_link ? slices_that_fill(*place.slowest_link, place) : 0;
  return std::min(widest, std::max(least, kSlicesOnSharedWires));
}

const FifoGeometry& geometry_for(Algorithm algorithm, const RingPlace& place) {
  if (uses_pairwise_edges(algorithm)) return place.pairwise[Index(pairwise_use(algorithm))];
  return algorithm == Algorithm::ring ? place.ring_geometry : place.off_ring_geometry;
}

// Whether a step may carry the chunks of several ranks, which lie side by side in the vector only
// in the order of ranks.
bool gathers_in_rank_order(Collective collective, Algorithm algorithm) {
  return algorithm == Algorithm::tree &&
         (collective == Collective::all_gather || collective == Collective::reduce_scatter);
}

std::uint64_t window_of(const Schedule& schedule, const RingPlace& place) {
  const Algorithm algorithm = schedule.algorithm;
  if (algorithm == Algorithm::pairwise) return pairwise_window(schedule, place);
  const FifoGeometry& geometry = geometry_for(algorithm, place);
  if (gathers_in_rank_order(schedule.collective, algorithm)) {
    return tree::window_for_pieces(geometry.slots);
  }
  if (algorithm == Algorithm::tree) return window_for(geometry.slots);
  // Every other algorithm uses edges of the ring, too, so the window fits the smaller FIFO.
  return window_for(std::min(geometry.slots, place.ring_geometry.slots));
}

}  // namespace

Plan make_plan(const Call& call, Algorithm algorithm, const RingPlace& place,
               std::uint64_t granule_bytes) {
  const std::uint64_t element = element_bytes(call);
  const int root = has_root(call.collective) ? call.root : 0;
  Plan plan;
  plan.ring = gathers_in_rank_order(call.collective, algorithm) ? place.in_rank_order : place.ring;
  plan.schedule = {call.collective, algorithm, position_of(*plan.ring, place.rank), place.size,
                   position_of(*plan.ring, root)};
  if (sends(call.collective)) plan.schedule.to = position_of(*plan.ring, call.to);
  if (receives(call.collective)) plan.schedule.from = position_of(*plan.ring, call.from);
  if (algorithm == Algorithm::halving_doubling) {
    plan.schedule.most_halvings = halvings_that_pay(call.count * element, place.size,
                                                    place.link_costs, {}, place.sharing_link);
  }
  plan.chunks_are_ranks = algorithm != Algorithm::halving_doubling &&
                          !is_message(call.collective) && plan.schedule.chunks() == place.size;
  plan.own = is_message(call.collective) ? Range{} : own_chunk(call, place.rank, place.size);
  plan.in_origin = input_range(call, place.rank, place.size).offset;
  plan.out_origin = output_range(call, place.rank, place.size).offset;

  Slicing& slicing = plan.slicing;
  slicing.count = call.count;
  slicing.chunks = static_cast<std::uint64_t>(plan.schedule.chunks());
  if (call.counts != nullptr) {
    slicing.borders = set_borders(*place.borders, call.counts, slicing.chunks);
    slicing.largest = largest_of(call.counts, slicing.chunks);
  }
  if (call.received_counts != nullptr) {
    slicing.received_borders =
        set_borders(*place.received_borders, call.received_counts, slicing.chunks);
    slicing.largest_received = largest_of(call.received_counts, slicing.chunks);
    const auto rank = static_cast<std::size_t>(place.rank);
    plan.own_moves_by = slicing.received_borders[rank] - slicing.borders[rank];
  }
  // Only where each rank has a chunk of its own can the caller see which rank has which elements.
  const bool visible = call.collective == Collective::reduce_scatter ||
                       call.collective == Collective::all_gather || goes_pairwise(call.collective);
  slicing.granule = visible ? 1 : granules(granule_bytes, element);
  slicing.channel_granule = granules(granule_bytes, element);
  // A rank that is alone copies elements of any size.
  slicing.slice_elems =
      std::max<std::uint64_t>(geometry_for(algorithm, place).slot_bytes / element, 1);
  slicing.window = window_of(plan.schedule, place);
  return plan;
}

Plan rail_plan(const Call& call, const RailPlace& place) {
  const std::uint64_t element = element_bytes(call);
  Plan plan;
  plan.schedule = {Collective::all_reduce, Algorithm::ring, place.host, place.hosts, 0};
  plan.ring = place.rail;
  plan.slicing.chunks = static_cast<std::uint64_t>(place.hosts);
  plan.slicing.granule = granule_elems(element);
  plan.slicing.slice_elems = place.geometry.slot_bytes / element;
  plan.slicing.window = window_for(place.geometry.slots);
  return plan;
}

}  // namespace rondo::detail

#include "plan/plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/collective_traits.hpp"
#include "plan/parts.hpp"

namespace rondo::detail {
namespace {

int position_of(const std::vector<int>& ring, int rank) {
  return static_cast<int>(std::find(ring.begin(), ring.end(), rank) - ring.begin());
}

// The borders of chunks of these sizes.
void set_borders(Slicing& slicing, std::vector<std::uint64_t>& borders, const std::size_t* counts,
                 std::uint64_t chunks) {
  borders[0] = 0;
  for (std::uint64_t i = 0; i < chunks; ++i) {
    borders[i + 1] = borders[i] + counts[i];
    if (counts[i] > counts[slicing.largest]) slicing.largest = i;
  }
  slicing.borders = borders.data();
}

// In all_to_all several ranks send to the same one, and share its wire. With much under way they
// fall out of step: some wires then carry the slices of two ranks, and others none. 8 MiB on 8 test
// hosts at 500 Mbit/s took 145 ms with 8 slices, 134 with 4, 128 with 2; on 4 hosts at 10 Gbit/s
// 23, 18 and 14 ms. Of two ranks each has a wire for itself.
constexpr std::uint64_t kSlicesOnSharedWires = 2;

// How many slices to each of the others a rank must keep under way to fill its link.
std::uint64_t slices_that_fill(const LinkFacts& link, const RingPlace& place) {
  const double round_trip_bytes = 2 * link.latency_us * link.bytes_per_us;
  const double others = place.size - 1;
  return static_cast<std::uint64_t>(std::ceil(
      round_trip_bytes / (others * static_cast<double>(place.pairwise_geometry.slot_bytes))));
}

std::uint64_t pairwise_window(const Schedule& schedule, const RingPlace& place) {
  const std::uint64_t widest = window_for(place.pairwise_geometry.slots);
  const bool share_wires =
      schedule.collective == Collective::all_to_all && place.has_pump && place.size > 2;
  if (!share_wires) return widest;
  const std::uint64_t least = place.slowest_link ? slices_that_fill(*place.slowest_link, place) : 0;
  return std::min(widest, std::max(least, kSlicesOnSharedWires));
}

const FifoGeometry& geometry_for(Algorithm algorithm, const RingPlace& place) {
  if (algorithm == Algorithm::pairwise) return place.pairwise_geometry;
  return algorithm == Algorithm::ring ? place.ring_geometry : place.off_ring_geometry;
}

// A step of the ring between hosts carries so many bytes of all owners of a host together, if the
// call has that many: a smaller step makes ranks wait more often, a greater one leaves the network
// idle for longer at the first and the last piece.
constexpr std::uint64_t kStepBytes = std::uint64_t{512} << 10U;
constexpr std::uint64_t kLeastStepBytes = std::uint64_t{256} << 10U;
// A call has so many pieces, if their steps are not too small for that.
constexpr std::uint64_t kPieces = 4;

// Where kStepBytes take a link less than four times its latency, a step carries as many bytes as
// the link in eight times its latency. That is rounded up to a power of two, so that runs seldom
// differ in the order of their additions although the link is measured anew. 0 for other links.
std::uint64_t step_bytes_of_far_link(const std::optional<LinkFacts>& link) {
  constexpr double kMost = 16 << 20U;
  if (!link) return 0;
  const double bytes = 8 * link->latency_us * link->bytes_per_us;
  if (bytes <= 2 * static_cast<double>(kStepBytes)) return 0;
  return std::bit_ceil(static_cast<std::uint64_t>(std::min(bytes, kMost)));
}

}  // namespace

Plan make_plan(const Call& call, Algorithm algorithm, const RingPlace& place,
               std::uint64_t granule_bytes) {
  const std::uint64_t element_bytes = size_of(call.type);
  const int root = has_root(call.collective) ? call.root : 0;
  Plan plan;
  plan.schedule = {call.collective, algorithm, position_of(*place.ring, place.rank), place.size,
                   position_of(*place.ring, root)};
  if (sends(call.collective)) plan.schedule.to = position_of(*place.ring, call.to);
  if (receives(call.collective)) plan.schedule.from = position_of(*place.ring, call.from);
  plan.ring = place.ring;
  plan.chunks_are_ranks = algorithm != Algorithm::halving_doubling &&
                          !is_message(call.collective) && plan.schedule.chunks() == place.size;
  plan.own = is_message(call.collective) ? Range{} : own_chunk(call, place.rank, place.size);
  plan.in_origin = input_range(call, place.rank, place.size).offset;
  plan.out_origin = output_range(call, place.rank, place.size).offset;

  Slicing& slicing = plan.slicing;
  slicing.count = call.count;
  slicing.chunks = static_cast<std::uint64_t>(plan.schedule.chunks());
  if (call.counts != nullptr) {
    set_borders(slicing, *place.borders, call.counts, slicing.chunks);
  }
  // Only where each rank has a chunk of its own can the caller see which rank has which elements.
  const bool visible = call.collective == Collective::reduce_scatter ||
                       call.collective == Collective::all_gather || goes_pairwise(call.collective);
  slicing.granule = visible ? 1 : granule_bytes / element_bytes;
  slicing.channel_granule = granule_bytes / element_bytes;
  const FifoGeometry& geometry = geometry_for(algorithm, place);
  slicing.slice_elems = geometry.slot_bytes / element_bytes;
  // Every other algorithm uses edges of the ring, too, so the window fits the smaller FIFO.
  slicing.window = algorithm == Algorithm::pairwise
                       ? pairwise_window(plan.schedule, place)
                       : window_for(std::min(geometry.slots, place.ring_geometry.slots));
  if (algorithm == Algorithm::halving_doubling) {
    slicing.window =
        slicing.slices({0, call.count});  // in one window: halving_doubling_steps.hpp says why
  }
  return plan;
}

Plan rail_plan(const Call& call, const RailPlace& place) {
  const std::uint64_t element_bytes = size_of(call.type);
  Plan plan;
  plan.schedule = {Collective::all_reduce, Algorithm::ring, place.host, place.hosts, 0};
  plan.ring = place.rail;
  plan.slicing.chunks = static_cast<std::uint64_t>(place.hosts);
  plan.slicing.granule = kChunkGranuleBytes / element_bytes;
  plan.slicing.slice_elems = place.geometry.slot_bytes / element_bytes;
  plan.slicing.window = window_for(place.geometry.slots);
  return plan;
}

std::uint64_t rail_piece_bytes(std::uint64_t bytes, int hosts,
                               const std::optional<LinkFacts>& link) {
  constexpr std::uint64_t kPage = 4096;
  const auto parts = static_cast<std::uint64_t>(hosts);
  std::uint64_t piece = parts * step_bytes_of_far_link(link);
  if (piece == 0) {  // the link is near, or was not measured
    piece = std::min(parts * kStepBytes, std::max(bytes / kPieces, parts * kLeastStepBytes));
  }
  return (piece + kPage - 1) / kPage * kPage;
}

}  // namespace rondo::detail

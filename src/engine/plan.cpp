#include "engine/plan.hpp"

#include <algorithm>

#include "base/collective_traits.hpp"

namespace rondo::detail {
namespace {

int position_of(const std::vector<int>& ring, int rank) {
  return static_cast<int>(std::find(ring.begin(), ring.end(), rank) - ring.begin());
}

}  // namespace

Plan make_plan(const Call& call, Algorithm algorithm, const RingPlace& place,
               std::uint64_t granule_bytes) {
  const std::uint64_t element_bytes = size_of(call.type);
  const int root = has_root(call.collective) ? call.root : 0;
  Plan plan;
  plan.schedule = {call.collective, algorithm, position_of(*place.ring, place.rank), place.size,
                   position_of(*place.ring, root)};
  plan.ring = place.ring;
  plan.chunks_are_ranks =
      algorithm != Algorithm::halving_doubling && plan.schedule.chunks() == place.size;
  plan.own = chunk_range(call.count, static_cast<std::uint64_t>(place.size),
                         static_cast<std::uint64_t>(place.rank));
  if (call.collective == Collective::all_gather) plan.in_origin = plan.own.offset;
  if (call.collective == Collective::reduce_scatter) plan.out_origin = plan.own.offset;

  Slicing& slicing = plan.slicing;
  slicing.count = call.count;
  slicing.chunks = static_cast<std::uint64_t>(plan.schedule.chunks());
  // Only in reduce_scatter and all_gather can the caller see which rank owns which elements.
  const bool visible =
      call.collective == Collective::reduce_scatter || call.collective == Collective::all_gather;
  slicing.granule = visible ? 1 : granule_bytes / element_bytes;
  slicing.channel_granule = granule_bytes / element_bytes;
  const FifoGeometry& geometry =
      algorithm == Algorithm::ring ? place.ring_geometry : place.off_ring_geometry;
  slicing.slice_elems = geometry.slot_bytes / element_bytes;
  // All algorithms use edges of the ring too, whose FIFOs may have fewer slots.
  slicing.window = window_for(std::min(geometry.slots, place.ring_geometry.slots));
  if (algorithm == Algorithm::halving_doubling) {
    slicing.window = slicing.slices({0, call.count});  // in one window: see its schedule
  }
  return plan;
}

Plan rail_plan(const Call& call, const Links& links) {
  const std::uint64_t element_bytes = size_of(call.type);
  Plan plan;
  plan.schedule = {Collective::all_reduce, Algorithm::ring, links.host, links.hosts, 0};
  plan.ring = &links.rail;
  plan.slicing.chunks = static_cast<std::uint64_t>(links.hosts);
  plan.slicing.granule = kChunkGranuleBytes / element_bytes;
  plan.slicing.slice_elems = links.rail_geometry.slot_bytes / element_bytes;
  plan.slicing.window = window_for(links.rail_geometry.slots);
  return plan;
}

}  // namespace rondo::detail

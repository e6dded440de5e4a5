// Works out, for a call and its algorithm, this rank's schedule and how the vector is cut, for host
// and device alike.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <rondo/call.hpp>

#include "base/link_facts.hpp"
#include "base/pairwise_use.hpp"
#include "fifo/fifo.hpp"
#include "plan/cost_model.hpp"
#include "schedule/schedule.hpp"
#include "schedule/slicing.hpp"

namespace rondo::detail {

// A rank's place in the ring, and the sizes of the smallest FIFOs. For an owner among those of the
// other hosts, `ring` is its rail and `size` the number of hosts; `rank` is the rank's number as
// ever, and only the first two sizes are set.
struct RingPlace {
  int rank = 0;
  int size = 1;
  const std::vector<int>* ring = nullptr;  // ranks in ring order
  FifoGeometry ring_geometry;
  FifoGeometry off_ring_geometry;              // of the off-ring edges, which other algorithms use
  ByPairwiseUse<FifoGeometry> pairwise = {};   // of the edges between any two ranks
  bool has_pump = false;                       // ranks of other hosts belong to the communicator
  std::optional<LinkFacts> slowest_link = {};  // all fields up to here, except `rank`, are the same
                                               // on all ranks
  int sharing_link = 1;  // ranks that do the same at the same time over one link
  const std::vector<int>* in_rank_order = nullptr;  // all ranks
  // Where make_plan() leaves the borders of chunks that have sizes of their own: size + 1 elements,
  // in use until the next call.
  std::vector<std::uint64_t>* borders = nullptr;
  std::vector<std::uint64_t>* received_borders = nullptr;  // the same, of what is received
  // Of `slowest_link`, for halving_doubling. Computed once, since a call must not compute with
  // floating-point numbers in the state of its caller's thread.
  LinkCosts link_costs = {};
};

struct Plan {
  Schedule schedule;
  Slicing slicing;
  Range own;                     // the rank's own chunk
  std::uint64_t in_origin = 0;   // which element of the vector comes first in the call's `in`
  std::uint64_t out_origin = 0;  // and in its `out`
  const std::vector<int>* ring = nullptr;  // the ranks by their position in the schedule
  // In all_to_all with counts: how far the rank's own chunk lies further back in its `out` than in
  // its `in`, modulo 2^64 elements.
  std::uint64_t own_moves_by = 0;
  bool chunks_are_ranks = false;  // chunk c is that of rank c; else chunks are numbered by position
};

// Makes this rank's plan of a call that has been checked, by an algorithm that has a schedule; it
// sends nothing. `granule_bytes`: chunk borders are multiples of this, except in calls in which
// each rank has a chunk of its own. Where the call has counts, the borders are left in
// `place.borders` and `place.received_borders`, to which the plan points until the next such call.
Plan make_plan(const Call& call, Algorithm algorithm, const RingPlace& place,
               std::uint64_t granule_bytes);

// A host's place among the hosts along a rail.
struct RailPlace {
  int host = 0;
  int hosts = 1;
  const std::vector<int>* rail = nullptr;  // the ranks along it
  FifoGeometry geometry;
};

// An owner's part in a hierarchical all_reduce along its rail, by ring; the caller sets
// `slicing.count`, to that of the owner's chunk of a piece.
Plan rail_plan(const Call& call, const RailPlace& place);

}  // namespace rondo::detail

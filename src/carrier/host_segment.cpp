#include "carrier/host_segment.hpp"

#include <utility>

#include "base/index.hpp"

namespace rondo::detail {
namespace {

constexpr std::size_t kHalves = 2;

std::size_t in_pages(std::size_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

// What is reserved when the segment is made.
constexpr std::size_t presences_offset() { return sizeof(AbortBoard) + sizeof(ReservingTurn); }
static_assert(sizeof(AbortBoard) % alignof(ReservingTurn) == 0);
static_assert(presences_offset() % alignof(Presence) == 0 &&
              sizeof(Presence) % alignof(Bell) == 0 && sizeof(Bell) % alignof(FifoCounter) == 0);
std::size_t bells_offset(const SegmentPlan& plan) {
  return presences_offset() + static_cast<std::size_t>(plan.size) * sizeof(Presence);
}
std::size_t counters_offset(const SegmentPlan& plan) {
  return bells_offset(plan) + static_cast<std::size_t>(plan.size) * sizeof(Bell);
}

// What is reserved when it is used: each part begins with a page.
std::size_t outboxes_bytes(const SegmentPlan& plan) {
  if (plan.one_shot_bytes == 0) return 0;
  return static_cast<std::size_t>(plan.size) * kHalves * box_stride(plan.one_shot_bytes);
}
std::size_t stages_offset(const SegmentPlan& plan) {
  return plan.reserved_bytes() + in_pages(outboxes_bytes(plan));
}
std::size_t stages_stride(const SegmentPlan& plan) { return in_pages(plan.stage_bytes); }
std::size_t slots_offset(const SegmentPlan& plan) {
  return stages_offset(plan) + static_cast<std::size_t>(plan.sharing) * stages_stride(plan);
}
std::size_t slots_stride(const SegmentEdge& edge) { return in_pages(slots_bytes(edge.geometry)); }
std::size_t pairwise_stride(const SegmentPlan& plan, int use) {
  const FifoGeometry& geometry = plan.pairwise[Index(use)];
  return geometry.slots == 0 ? 0 : in_pages(contiguous_fifo_bytes(geometry));
}
// Where the FIFOs for a use begin; kPairwiseUses: where the last ones end.
std::size_t pairwise_offset(const SegmentPlan& plan, int use) {
  std::size_t offset = slots_offset(plan);
  for (const SegmentEdge& edge : plan.edges) offset += slots_stride(edge);
  const auto ranks = static_cast<std::size_t>(plan.pairwise_ranks);
  for (int before = 0; before < use; ++before) {
    offset += ranks * ranks * pairwise_stride(plan, before);
  }
  return offset;
}

// Returns where an edge's counters and slots are.
struct EdgePlace {
  std::size_t counters = 0;
  std::size_t slots = 0;
  const SegmentEdge* edge = nullptr;  // null: the segment does not carry it
};
EdgePlace place_of(const SegmentPlan& plan, const RankPair& ranks) {
  EdgePlace place{counters_offset(plan), slots_offset(plan)};
  for (const SegmentEdge& edge : plan.edges) {
    if (edge.ranks == ranks) {
      place.edge = &edge;
      break;
    }
    place.counters += 2 * sizeof(FifoCounter);
    place.slots += slots_stride(edge);
  }
  return place;
}

// Each T is an implicit-lifetime type whose initial state is all zero bytes, as in new pages.
template <class T>
T& at(const Mapping& mapping, std::size_t offset, int index) {
  return reinterpret_cast<T*>(mapping.data() + offset)[index];
}

}  // namespace

std::size_t SegmentPlan::reserved_bytes() const {
  return in_pages(counters_offset(*this) + edges.size() * 2 * sizeof(FifoCounter));
}

std::size_t SegmentPlan::bytes() const { return pairwise_offset(*this, kPairwiseUses); }

HostSegment::HostSegment(Mapping mapping, SegmentPlan plan)
    : mapping_(std::move(mapping)), plan_(std::move(plan)) {}

AbortBoard& HostSegment::board() const { return at<AbortBoard>(mapping_, 0, 0); }

ReservingTurn& HostSegment::reserving_turn() const {
  return at<ReservingTurn>(mapping_, sizeof(AbortBoard), 0);
}

Presence& HostSegment::presence(int rank) const {
  return at<Presence>(mapping_, presences_offset(), rank);
}

Bell& HostSegment::bell(int rank) const { return at<Bell>(mapping_, bells_offset(plan_), rank); }

OutboxHeader* HostSegment::outbox(int rank, std::uint64_t number) const {
  const std::size_t index = static_cast<std::size_t>(rank) * kHalves + number % kHalves;
  return reinterpret_cast<OutboxHeader*>(mapping_.data() + plan_.reserved_bytes() +
                                         index * box_stride(plan_.one_shot_bytes));
}

std::byte* HostSegment::stage(int index) const { return mapping_.data() + stage_of(index).offset; }

std::optional<FifoMemory> HostSegment::fifo(const RankPair& ranks) const {
  const EdgePlace place = place_of(plan_, ranks);
  if (place.edge == nullptr) return std::nullopt;
  auto* const counters = &at<FifoCounter>(mapping_, place.counters, 0);
  return FifoMemory{counters, counters + 1, mapping_.data() + place.slots, place.edge->geometry};
}

FifoMemory HostSegment::pairwise_fifo(PairwiseUse use, int from, int to) const {
  return contiguous_fifo(mapping_.data() + pairwise(use, from, to).offset,
                         plan_.pairwise[Index(use)]);
}

SegmentPart HostSegment::outboxes() const {
  return {plan_.reserved_bytes(), in_pages(outboxes_bytes(plan_))};
}

SegmentPart HostSegment::stage_of(int index) const {
  return {stages_offset(plan_) + static_cast<std::size_t>(index) * stages_stride(plan_),
          stages_stride(plan_)};
}

SegmentPart HostSegment::slots_of(const RankPair& ranks) const {
  const EdgePlace place = place_of(plan_, ranks);
  return place.edge == nullptr ? SegmentPart{}
                               : SegmentPart{place.slots, slots_stride(*place.edge)};
}

SegmentPart HostSegment::pairwise(PairwiseUse use, int from, int to) const {
  const auto ranks = static_cast<std::size_t>(plan_.pairwise_ranks);
  const std::size_t number = static_cast<std::size_t>(from) * ranks + static_cast<std::size_t>(to);
  const std::size_t stride = pairwise_stride(plan_, static_cast<int>(use));
  return {pairwise_offset(plan_, static_cast<int>(use)) + number * stride, stride};
}

void HostSegment::reserve(std::span<const SegmentPart> parts) const {
  std::size_t bytes = 0;
  for (const SegmentPart& part : parts) bytes += part.bytes;
  if (bytes == 0) return;
  const ReservingScope turn(reserving_turn(), bytes);
  require_room(bytes);
  for (const SegmentPart& part : parts) {
    if (part.bytes > 0) reserve_pages(mapping_.data() + part.offset, part.bytes);
  }
}

}  // namespace rondo::detail

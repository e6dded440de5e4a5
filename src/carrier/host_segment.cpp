#include "carrier/host_segment.hpp"

#include <utility>

namespace rondo::detail {
namespace {

constexpr std::size_t kHalves = 2;

std::size_t presences_offset() { return sizeof(AbortBoard); }
std::size_t bells_offset(const SegmentPlan& plan) {
  return presences_offset() + static_cast<std::size_t>(plan.size) * sizeof(Presence);
}
std::size_t outboxes_offset(const SegmentPlan& plan) {
  return bells_offset(plan) + static_cast<std::size_t>(plan.size) * sizeof(Bell);
}
std::size_t stages_offset(const SegmentPlan& plan) {
  if (plan.one_shot_bytes == 0) return outboxes_offset(plan);
  return outboxes_offset(plan) +
         static_cast<std::size_t>(plan.size) * kHalves * box_stride(plan.one_shot_bytes);
}
std::size_t fifos_offset(const SegmentPlan& plan) {
  return stages_offset(plan) + static_cast<std::size_t>(plan.sharing) * kHalves * plan.stage_bytes;
}

std::size_t in_pages(std::size_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}
std::size_t pairwise_stride(const SegmentPlan& plan) {
  return in_pages(contiguous_fifo_bytes(plan.pairwise));
}

// Each T is an implicit-lifetime type whose initial state is all zero bytes, as in new pages.
template <class T>
T& at(const Mapping& mapping, std::size_t offset, int index) {
  return reinterpret_cast<T*>(mapping.data() + offset)[index];
}

}  // namespace

std::size_t SegmentPlan::reserved_bytes() const {
  std::size_t bytes = fifos_offset(*this);
  for (const SegmentEdge& edge : edges) bytes += contiguous_fifo_bytes(edge.geometry);
  return in_pages(bytes);
}

std::size_t SegmentPlan::bytes() const {
  const auto ranks = static_cast<std::size_t>(pairwise_ranks);
  return reserved_bytes() + ranks * ranks * pairwise_stride(*this);
}

HostSegment::HostSegment(Mapping mapping, SegmentPlan plan)
    : mapping_(std::move(mapping)), plan_(std::move(plan)) {}

AbortBoard& HostSegment::board() const { return at<AbortBoard>(mapping_, 0, 0); }

Presence& HostSegment::presence(int rank) const {
  return at<Presence>(mapping_, presences_offset(), rank);
}

Bell& HostSegment::bell(int rank) const { return at<Bell>(mapping_, bells_offset(plan_), rank); }

OutboxHeader* HostSegment::outbox(int rank, std::uint64_t number) const {
  const std::size_t index = static_cast<std::size_t>(rank) * kHalves + number % kHalves;
  return reinterpret_cast<OutboxHeader*>(mapping_.data() + outboxes_offset(plan_) +
                                         index * box_stride(plan_.one_shot_bytes));
}

std::byte* HostSegment::stage(int index, std::uint64_t window) const {
  const std::size_t number = static_cast<std::size_t>(index) * kHalves + window % kHalves;
  return mapping_.data() + stages_offset(plan_) + number * plan_.stage_bytes;
}

std::optional<FifoMemory> HostSegment::fifo(const RankPair& ranks) const {
  std::size_t offset = fifos_offset(plan_);
  for (const SegmentEdge& edge : plan_.edges) {
    if (edge.ranks == ranks) return contiguous_fifo(mapping_.data() + offset, edge.geometry);
    offset += contiguous_fifo_bytes(edge.geometry);
  }
  return std::nullopt;
}

FifoMemory HostSegment::open_pairwise(int from, int to) const {
  const auto ranks = static_cast<std::size_t>(plan_.pairwise_ranks);
  const std::size_t number = static_cast<std::size_t>(from) * ranks + static_cast<std::size_t>(to);
  std::byte* data = mapping_.data() + plan_.reserved_bytes() + number * pairwise_stride(plan_);
  reserve_pages(data, pairwise_stride(plan_));
  return contiguous_fifo(data, plan_.pairwise);
}

}  // namespace rondo::detail

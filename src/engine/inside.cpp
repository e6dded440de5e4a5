#include "engine/inside.hpp"

#include <algorithm>

#include "reduce/fold.hpp"
#include "schedule/slicing.hpp"

namespace rondo::detail {

Inside::Inside(Wiring& wiring, Waiter& waiter)
    : wiring_(wiring), waiter_(waiter), copy_(vector_copy()) {
  const std::vector<int>& ranks = wiring.links.ranks_sharing;
  index_ = static_cast<int>(std::find(ranks.begin(), ranks.end(), wiring.rank) - ranks.begin());
  owners_ = wiring.links.rails;
  ins_.resize(ranks.size());
}

Range Inside::chunk_of(const Call& call, int owner) const {
  return chunk_range(call.count, static_cast<std::uint64_t>(owners_),
                     static_cast<std::uint64_t>(owner), kChunkGranuleBytes / size_of(call.type));
}

Range Inside::slice_of(const Range& chunk, std::uint64_t number, std::uint64_t most) {
  const std::uint64_t begin = std::min(number * most, chunk.count);
  return {chunk.offset + begin, std::min(most, chunk.count - begin)};
}

// Of the window at which this rank arrives next.
std::byte* Inside::stage(int index) const { return wiring_.links.segment->stage(index, windows_); }

bool Inside::wait_failed(int rank, WaitResult result) {
  failure_ = waiter_.why(result, rank);
  return false;
}

bool Inside::meet(const Signature& signature) {
  windows_before_ = windows_;
  for (const int rank : wiring_.links.ranks_sharing) {
    if (rank == wiring_.rank) continue;
    const WaitResult result =
        waiter_.wait(rank, [&] { return presence(rank).has_entered(signature.sequence); });
    if (result != WaitResult::ready) return wait_failed(rank, result);
    // A rank that has gone on did not wait for this one, so it made another call.
    const auto call = presence(rank).last_call();
    if (call && call->signature == signature) continue;
    failure_ = {WaitResult::other_call, rank, call ? call->signature : Signature{}};
    return false;
  }
  return true;
}

bool Inside::arrive() {
  ++windows_;
  // Release pairs with the acquire in has_arrived(): whoever finds this finds the stage as it was written.
  presence(wiring_.rank).arrive(windows_);
  for (const int rank : wiring_.links.ranks_sharing) {
    if (rank != wiring_.rank) wiring_.links.segment->bell(rank).ring();
  }
  for (const int rank : wiring_.links.ranks_sharing) {
    if (rank == wiring_.rank) continue;
    const WaitResult result =
        waiter_.wait(rank, [&] { return presence(rank).has_arrived(windows_); });
    if (result != WaitResult::ready) return wait_failed(rank, result);
  }
  return true;
}

bool Inside::reduce(const Call& call, ReduceOp op) {
  const std::size_t element = size_of(call.type);
  const std::uint64_t granule = kChunkGranuleBytes / element;
  const std::size_t part_bytes =
      wiring_.links.segment->stage_bytes() / static_cast<std::size_t>(owners_);
  const std::uint64_t most = part_bytes / element / granule * granule;
  const auto* in = static_cast<const std::byte*>(call.in);
  // At least one: no rank leaves the call before all have met.
  const std::uint64_t windows =
      std::max<std::uint64_t>((chunk_of(call, 0).count + most - 1) / most, 1);
  for (std::uint64_t window = 0; window < windows; ++window) {
    for (int owner = 0; owner < owners_; ++owner) {
      if (owner == index_) continue;
      const Range slice = slice_of(chunk_of(call, owner), window, most);
      if (slice.count == 0) continue;  // the buffers of an empty vector may be null
      copy_.cached(stage(index_) + static_cast<std::size_t>(owner) * most * element,
                   in + slice.offset * element, slice.count * element);
    }
    const std::uint64_t written = windows_;
    if (!arrive()) return false;
    if (!owns()) continue;
    fold_slice(call, op, slice_of(chunk(call), window, most), written,
               static_cast<std::size_t>(index_) * most * element);
  }
  return true;
}

// `window`: in whose stages the others' elements are, from byte `in_stage` on.
void Inside::fold_slice(const Call& call, ReduceOp op, const Range& slice, std::uint64_t window,
                        std::size_t in_stage) {
  const std::size_t offset = slice.offset * size_of(call.type);
  for (std::size_t i = 0; i < ins_.size(); ++i) {
    const bool own = static_cast<int>(i) == index_;
    ins_[i] = own ? static_cast<const std::byte*>(call.in) + offset
                  : wiring_.links.segment->stage(static_cast<int>(i), window) + in_stage;
  }
  std::byte* out = static_cast<std::byte*>(call.out) + offset;
  vector_fold(call.type, op)({&out, 1, ins_.data(), ins_.size()}, slice.count);
}

bool Inside::spread(const Call& call) {
  const std::size_t element = size_of(call.type);
  const std::uint64_t most = wiring_.links.segment->stage_bytes() / element;
  auto* out = static_cast<std::byte*>(call.out);
  const std::uint64_t windows = (chunk_of(call, 0).count + most - 1) / most;
  for (std::uint64_t window = 0; window < windows; ++window) {
    if (owns()) {
      const Range slice = slice_of(chunk(call), window, most);
      if (slice.count > 0)
        copy_.cached(stage(index_), out + slice.offset * element, slice.count * element);
    }
    const std::uint64_t written = windows_;
    if (!arrive()) return false;
    for (int owner = 0; owner < owners_; ++owner) {
      if (owner == index_) continue;
      const Range slice = slice_of(chunk_of(call, owner), window, most);
      if (slice.count == 0) continue;
      copy_.cached(out + slice.offset * element, wiring_.links.segment->stage(owner, written),
                   slice.count * element);
    }
  }
  return true;
}

}  // namespace rondo::detail

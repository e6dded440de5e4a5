#include "engine/direct.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/collective_traits.hpp"
#include "base/index.hpp"
#include "engine/call_text.hpp"
#include "engine/fold_call.hpp"

namespace rondo::detail {
namespace {

// A part is folded or copied in pieces that stay in the L1 cache from one target to the next.
constexpr std::uint64_t kCopyBytes = 8192;

}  // namespace

Direct::Direct(Context& context)
    : context_(context), wiring_(context.wiring), copy_(vector_copy()) {
  const auto size = static_cast<std::size_t>(wiring_.size);
  buffers_.resize(size);
  ins_.resize(size);
  outs_.resize(size);
  piece_ins_.resize(size);
}

BufferLocations locations_of(const Wiring& wiring, const Call& call) {
  const Reach& reach = wiring.links.reach;
  const DirectCall plan = direct_part_of(call, wiring.size);
  const auto locate = [&](const void* data, const Range& range) {
    if (range.count == 0) return kNothingNeeded;
    return reach.location_of(data, range.count * element_bytes(call));
  };
  return {locate(call.in, plan.input(wiring.rank)), locate(call.out, plan.output(wiring.rank))};
}

Arena::Use use_of(const Wiring& wiring, const Call& call, const BufferLocations& buffers) {
  const DirectCall plan = direct_part_of(call, wiring.size);
  const std::size_t element = element_bytes(call);
  return wiring.links.reach.use(buffers.in, plan.input(wiring.rank).count * element, buffers.out,
                                plan.output(wiring.rank).count * element);
}

bool Direct::run(const Call& call, const ShownCall& shown, bool may_fall_back) {
  call_ = &call;
  plan_ = direct_part_of(call, wiring_.size);
  shown_ = shown;
  may_fall_back_ = may_fall_back;
  context_.progress.ranks = wiring_.size;
  context_.progress.ranks_shown = 1;
  unreachable_rank_.reset();
  ring_all(wiring_.links.bells);  // wakes ranks that wait until this rank has shown its buffers
  if (!run_direct(plan_, wiring_.rank, *this)) return false;
  context_.confirmation.forget();
  return true;
}

void Direct::throw_unreachable() const {
  throw UsageError(fmt::format(
      "rank {}: {}: direct needs buffers that all ranks can reach, and those of {} are not; use "
      "memory of rondo::reachable_memory() on all ranks, or let Rondo choose the algorithm",
      wiring_.rank, describe(shown_.signature),
      unreachable_rank_ ? fmt::format("rank {}", *unreachable_rank_)
                        : std::string("another rank")));
}

bool Direct::sees_reachable(int rank) {
  std::optional<ShownCall> call = shown_;
  if (rank != wiring_.rank) {
    const std::uint64_t sequence = shown_.signature.sequence;
    Presence& theirs = context_.presence(rank);
    context_.waiter.wait(rank, [&] { return theirs.has_entered(sequence); });
    call = theirs.call(sequence);
    if (!call) return false;  // it has gone on to a later call
    if (!(call->signature == shown_.signature)) {
      throw Failure{Cause::other_call, rank, call->signature};
    }
    ++context_.progress.ranks_shown;
  }
  buffers_[Index(rank)] = call->buffers;
  if (reachable(call->buffers)) return true;
  if (!unreachable_rank_) unreachable_rank_ = rank;
  return false;
}

bool Direct::meet() {
  if (may_fall_back_ && !reachable(shown_.buffers)) return false;
  bool all = true;
  for (int rank = 0; rank < wiring_.size; ++rank) {
    all &= sees_reachable(rank);
    if (!all && may_fall_back_) break;
  }
  if (all) context_.touching.begin();
  return all;
}

void Direct::handle(const Range& elements, const RankRange& sources, const RankRange& targets) {
  if (elements.count == 0) return;
  const Reach& reach = wiring_.links.reach;
  const std::size_t element = element_bytes(*call_);
  const auto find = [&](int rank, std::uint64_t location, const Range& buffer) {
    return reach.find(rank, location) + (elements.offset - buffer.offset) * element;
  };
  for (int i = 0; i < sources.count; ++i) {
    const int rank = sources.first + i;
    ins_[Index(i)] = find(rank, buffers_[Index(rank)].in, plan_.input(rank));
  }
  for (int i = 0; i < targets.count; ++i) {
    const int rank = targets.first + i;
    outs_[Index(i)] = find(rank, buffers_[Index(rank)].out, plan_.output(rank));
  }
  own_out_ = targets.has(wiring_.rank) ? outs_[Index(wiring_.rank - targets.first)] : nullptr;
  const FoldOperands operands{outs_.data(), static_cast<std::size_t>(targets.count), ins_.data(),
                              static_cast<std::size_t>(sources.count),
                              average_of(call_->type, sources.count)};
  if (reduces(call_->collective)) {
    stores_of_folds_.write(elements.count * element, [&](Stores stores) {
      if (stores == Stores::cached || call_->reduction != nullptr) {
        fold_call(*call_, call_->op, operands, elements.count);
      } else {
        fold_past_caches(operands, elements.count);
      }
    });
  } else {
    copy_to_all(operands, elements.count * element);
  }
}

void Direct::fold_past_caches(const FoldOperands& operands, std::uint64_t count) {
  const std::size_t element = element_bytes(*call_);
  const std::uint64_t piece_elems = kCopyBytes / element;
  const FoldFunction fold = vector_fold(call_->type, call_->op);
  alignas(64) std::array<std::byte, kCopyBytes> piece;  // NOLINT: written before it is read
  for (std::uint64_t done = 0; done < count; done += piece_elems) {
    const std::uint64_t elems = std::min(piece_elems, count - done);
    const std::size_t at = done * element;
    for (std::size_t k = 0; k < operands.in_count; ++k) piece_ins_[k] = operands.ins[k] + at;
    std::byte* result = own_out_ != nullptr ? own_out_ + at : piece.data();
    fold({&result, 1, piece_ins_.data(), operands.in_count, operands.average}, elems);
    for (std::size_t j = 0; j < operands.out_count; ++j) {
      if (operands.outs[j] == own_out_) continue;
      copy_.non_temporal(operands.outs[j] + at, result, elems * element);
    }
  }
}

void Direct::copy_to_all(const FoldOperands& operands, std::size_t bytes) {
  const std::byte* from = operands.ins[0];
  stores_of_copies_.write(bytes, [&](Stores stores) {
    for (std::size_t at = 0; at < bytes; at += kCopyBytes) {
      const std::size_t piece = std::min(kCopyBytes, bytes - at);
      for (std::size_t j = 0; j < operands.out_count; ++j) {
        std::byte* to = operands.outs[j];
        if (to == from) continue;
        const bool cached = stores == Stores::cached || to == own_out_;
        (cached ? copy_.cached : copy_.non_temporal)(to + at, from + at, piece);
      }
    }
  });
}

bool Direct::finish() {
  context_.touching.end();
  context_.touching.wait_for_all();
  return true;
}

}  // namespace rondo::detail

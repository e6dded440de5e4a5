#include "engine/direct.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/collective_traits.hpp"

namespace rondo::detail {
namespace {

// A part is copied in pieces that stay in the L1 cache from one target to the next.
constexpr std::uint64_t kCopyBytes = 8192;

}  // namespace

Direct::Direct(Wiring& wiring, Waiter& waiter, Touching& touching)
    : wiring_(wiring), waiter_(waiter), touching_(touching), copy_(vector_copy()) {
  const auto size = static_cast<std::size_t>(wiring.size);
  buffers_.resize(size);
  ins_.resize(size);
  outs_.resize(size);
}

BufferLocations Direct::locations_of(const Call& call) const {
  const Registry& registry = *wiring_.links.registry;
  if (!registry.reaches_any()) return {};
  const DirectCall plan = direct_part_of(call, wiring_.size);
  const auto locate = [&](const void* data, const Range& range) {
    if (range.count == 0) return kNothingNeeded;
    return registry.location_of(data, range.count * size_of(call.type));
  };
  return {locate(call.in, plan.input(wiring_.rank)), locate(call.out, plan.output(wiring_.rank))};
}

Direct::Outcome Direct::run(const Call& call, const ShownCall& shown, bool or_else) {
  call_ = &call;
  plan_ = direct_part_of(call, wiring_.size);
  shown_ = shown;
  or_else_ = or_else;
  met_ = 1;
  reachable_ = true;
  unreachable_rank_.reset();
  failure_ = {};
  if (run_direct(plan_, wiring_.rank, *this)) return Outcome::done;
  return reachable_ ? Outcome::failed : Outcome::unreachable;
}

std::string Direct::so_far() const {
  return fmt::format("{} of {} ranks had shown their buffers, {} had done their part", met_,
                     wiring_.size, touching_.done());
}

Direct::Seen Direct::look_at(int rank) {
  const std::uint64_t sequence = shown_.signature.sequence;
  if (rank != wiring_.rank) {
    const WaitResult result =
        waiter_.wait(rank, [&] { return presence(rank).has_entered(sequence); });
    if (result != WaitResult::ready) {
      failure_ = waiter_.why(result, rank);
      return Seen::failed;
    }
  }
  const auto call = rank == wiring_.rank ? shown_ : presence(rank).call(sequence);
  if (!call) return Seen::unreachable;  // it has gone on to a later call
  if (!(call->signature == shown_.signature)) {
    failure_ = {WaitResult::other_call, rank, call->signature};
    return Seen::failed;
  }
  met_ += rank != wiring_.rank ? 1 : 0;
  buffers_[static_cast<std::size_t>(rank)] = call->buffers;
  if (reachable(call->buffers)) return Seen::reachable;
  if (!unreachable_rank_) unreachable_rank_ = rank;
  return Seen::unreachable;
}

bool Direct::meet() {
  if (or_else_ && !reachable(shown_.buffers)) {
    reachable_ = false;
    return false;
  }
  bool all = true;
  for (int rank = 0; rank < wiring_.size; ++rank) {
    const Seen seen = look_at(rank);
    if (seen == Seen::failed) return false;
    all = all && seen == Seen::reachable;
    if (!all && or_else_) break;
  }
  reachable_ = all;
  if (!all || touching_.begin()) return all;
  failure_ = touching_.failure();
  return false;
}

void Direct::handle(const Range& elements, const RankRange& sources, const RankRange& targets) {
  if (elements.count == 0) return;
  const Registry& registry = *wiring_.links.registry;
  const std::size_t element = size_of(call_->type);
  const auto find = [&](int rank, std::uint64_t location, const Range& buffer) {
    return registry.find(rank, location) + (elements.offset - buffer.offset) * element;
  };
  for (int i = 0; i < sources.count; ++i) {
    const int rank = sources.first + i;
    ins_[static_cast<std::size_t>(i)] =
        find(rank, buffers_[static_cast<std::size_t>(rank)].in, plan_.input(rank));
  }
  for (int i = 0; i < targets.count; ++i) {
    const int rank = targets.first + i;
    outs_[static_cast<std::size_t>(i)] =
        find(rank, buffers_[static_cast<std::size_t>(rank)].out, plan_.output(rank));
  }
  const FoldOperands operands{outs_.data(), static_cast<std::size_t>(targets.count), ins_.data(),
                              static_cast<std::size_t>(sources.count),
                              average_of(call_->type, sources.count)};
  if (reduces(call_->collective)) {
    vector_fold(call_->type, call_->op)(operands, elements.count);
  } else {
    copy_to_all(operands, elements.count * element);
  }
}

void Direct::copy_to_all(const FoldOperands& operands, std::size_t bytes) {
  const std::byte* from = operands.ins[0];
  for (std::size_t at = 0; at < bytes; at += kCopyBytes) {
    const std::size_t piece = std::min(kCopyBytes, bytes - at);
    for (std::size_t j = 0; j < operands.out_count; ++j) {
      if (operands.outs[j] != from) copy_.cached(operands.outs[j] + at, from + at, piece);
    }
  }
}

bool Direct::finish() {
  touching_.end();
  if (touching_.wait_for_all()) return true;
  failure_ = touching_.failure();
  return false;
}

}  // namespace rondo::detail

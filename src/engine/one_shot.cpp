#include "engine/one_shot.hpp"

#include "base/collective_traits.hpp"
#include "base/index.hpp"
#include "engine/fold_call.hpp"
#include "plan/parts.hpp"

namespace rondo::detail {

OneShot::OneShot(Context& context)
    : context_(context),
      wiring_(context.wiring),
      copy_(vector_copy()),
      contributions_(static_cast<std::size_t>(context.wiring.size)) {}

Range OneShot::posted(const Call& call, int rank) const {
  return reads_input(call, rank) ? input_range(call, rank, wiring_.size) : Range{};
}

const std::byte* OneShot::contribution_of(int rank, const Call& call) const {
  // Its own outbox may be in no cache of this core.
  if (rank == wiring_.rank) return static_cast<const std::byte*>(call.in);
  OutboxHeader* outbox = wiring_.links.segment->outbox(rank, number_);
  return outbox_payload(outbox, posted(call, rank).count * element_bytes(call));
}

void OneShot::post(const Call& call, const Signature& signature) {
  OutboxHeader* outbox = wiring_.links.segment->outbox(wiring_.rank, number_);
  const std::size_t bytes = posted(call, wiring_.rank).count * element_bytes(call);
  if (bytes > 0) {
    copy_to_outbox_(outbox_payload(outbox, bytes), static_cast<const std::byte*>(call.in), bytes);
  }
  outbox->signature = signature;
  // Release pairs with the acquire in wait_for: the reader then sees the whole outbox.
  store_release(outbox->number, number_);
  ring_all(wiring_.links.bells);
  context_.progress.bytes_sent = bytes;
}

void OneShot::wait_for(int rank, const Signature& signature) {
  OutboxHeader* outbox = wiring_.links.segment->outbox(rank, number_);
  context_.waiter.wait(rank, [&] { return load_acquire(outbox->number) == number_; });
  if (!(outbox->signature == signature)) {
    throw Failure{Cause::other_call, rank, outbox->signature};
  }
  ++context_.progress.slices_received;
}

void OneShot::copy_from(int rank, const Call& call) {
  const std::size_t element = element_bytes(call);
  const Range range = posted(call, rank);
  if (range.count == 0) return;  // the buffers may be null
  std::byte* to = static_cast<std::byte*>(call.out) + range.offset * element;
  const std::byte* from = contribution_of(rank, call);
  if (from != to) copy_.cached(to, from, range.count * element);
}

void OneShot::reduce(const Call& call, const Range& wanted) {
  for (int rank = 0; rank < wiring_.size; ++rank) {
    contributions_[Index(rank)] = contribution_of(rank, call) + wanted.offset * element_bytes(call);
  }
  auto* out = static_cast<std::byte*>(call.out);
  fold_call(
      call, call.op,
      {&out, 1, contributions_.data(), contributions_.size(), average_of(call.type, wiring_.size)},
      wanted.count);
}

void OneShot::run(const Call& call, const Signature& signature) {
  ++number_;
  context_.reserve_for(Algorithm::one_shot);
  post(call, signature);
  Range wanted;  // the part of the vector that this rank outputs
  if (writes_output(call, wiring_.rank)) wanted = output_range(call, wiring_.rank, wiring_.size);
  const bool copies = !reduces(call.collective);
  for (int rank = 0; rank < wiring_.size; ++rank) {
    if (rank != wiring_.rank) wait_for(rank, signature);
    if (copies && wanted.count > 0) copy_from(rank, call);
  }
  if (!copies && wanted.count > 0) reduce(call, wanted);
  context_.confirmation.forget();
}

}  // namespace rondo::detail

#include "engine/one_shot.hpp"

#include "base/collective_traits.hpp"

namespace rondo::detail {

OneShot::OneShot(Wiring& wiring, Waiter& waiter, const Call& call, const HostCall& host_call,
                 std::uint64_t number)
    : wiring_(wiring),
      waiter_(waiter),
      call_(call),
      host_call_(host_call),
      number_(number),
      copy_(vector_copy()) {
  const bool takes = call.collective != Collective::reduce || call.root == wiring.rank;
  if (takes)
    wanted_ = call.collective == Collective::reduce_scatter ? own_chunk() : Range{0, call.count};
}

Range OneShot::own_chunk() const {
  return chunk_range(call_.count, static_cast<std::uint64_t>(wiring_.size),
                     static_cast<std::uint64_t>(wiring_.rank));
}

Range OneShot::posted(int rank) const {
  if (call_.collective == Collective::all_gather) {
    return chunk_range(call_.count, static_cast<std::uint64_t>(wiring_.size),
                       static_cast<std::uint64_t>(rank));
  }
  if (call_.collective == Collective::broadcast && rank != call_.root) return {};
  return {0, call_.count};
}

const std::byte* OneShot::payload_of(int rank) const {
  OutboxHeader* outbox = wiring_.links.segment->outbox(rank, number_);
  return outbox_payload(outbox, posted(rank).count * host_call_.element_bytes);
}

void OneShot::post() {
  OutboxHeader* outbox = wiring_.links.segment->outbox(wiring_.rank, number_);
  const std::size_t bytes = posted(wiring_.rank).count * host_call_.element_bytes;
  if (bytes > 0)
    copy_.cached(outbox_payload(outbox, bytes), static_cast<const std::byte*>(call_.in), bytes);
  outbox->signature = host_call_.signature;
  // Release pairs with the acquire in wait_for: the reader then sees the whole outbox.
  store_release(outbox->number, number_);
  ring_all(wiring_.links.bells);
  progress_.bytes_sent = bytes;
}

bool OneShot::wait_for(int rank) {
  OutboxHeader* outbox = wiring_.links.segment->outbox(rank, number_);
  const WaitResult result =
      waiter_.wait(rank, [&] { return load_acquire(outbox->number) == number_; });
  if (result != WaitResult::ready) {
    failure_ = waiter_.why(result, rank);
    return false;
  }
  if (!(outbox->signature == host_call_.signature)) {
    failure_ = {WaitResult::other_call, rank, outbox->signature};
    return false;
  }
  ++progress_.slices_received;
  return true;
}

// Reduces or copies what `rank` has posted into the output; called for all ranks in order.
void OneShot::take(int rank) {
  if (wanted_.count == 0) return;
  auto* out = static_cast<std::byte*>(call_.out);
  const std::size_t element = host_call_.element_bytes;
  if (!reduces(call_.collective)) {
    const Range range = posted(rank);
    copy_.cached(out + range.offset * element, payload_of(rank), range.count * element);
    return;
  }
  if (rank == 0) return;
  const std::size_t offset = wanted_.offset * element;
  const std::byte* so_far = rank == 1 ? payload_of(0) + offset : out;
  const ReduceFunction function =
      rank == wiring_.size - 1 ? host_call_.kernel.finish : host_call_.kernel.combine;
  function(out, nullptr, payload_of(rank) + offset, so_far, wanted_.count, wiring_.size);
}

bool OneShot::run() {
  post();
  for (int rank = 0; rank < wiring_.size; ++rank) {
    if (rank != wiring_.rank && !wait_for(rank)) return false;
    take(rank);
  }
  return true;
}

}  // namespace rondo::detail

#include "engine/one_shot.hpp"

#include "base/collective_traits.hpp"
#include "engine/parts.hpp"
#include "reduce/fold.hpp"

namespace rondo::detail {

OneShot::OneShot(Wiring& wiring, Waiter& waiter, const Call& call, const Signature& signature,
                 std::span<const std::byte*> contributions, std::uint64_t number)
    : wiring_(wiring),
      waiter_(waiter),
      call_(call),
      signature_(signature),
      contributions_(contributions),
      number_(number),
      element_bytes_(size_of(call.type)),
      copy_(vector_copy()) {
  if (writes_output(call, wiring.rank)) wanted_ = output_range(call, wiring.rank, wiring.size);
}

Range OneShot::posted(int rank) const {
  return reads_input(call_, rank) ? input_range(call_, rank, wiring_.size) : Range{};
}

const std::byte* OneShot::payload_of(int rank) const {
  OutboxHeader* outbox = wiring_.links.segment->outbox(rank, number_);
  return outbox_payload(outbox, posted(rank).count * element_bytes_);
}

void OneShot::post() {
  OutboxHeader* outbox = wiring_.links.segment->outbox(wiring_.rank, number_);
  const std::size_t bytes = posted(wiring_.rank).count * element_bytes_;
  if (bytes > 0)
    copy_.cached(outbox_payload(outbox, bytes), static_cast<const std::byte*>(call_.in), bytes);
  outbox->signature = signature_;
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
  if (!(outbox->signature == signature_)) {
    failure_ = {WaitResult::other_call, rank, outbox->signature};
    return false;
  }
  ++progress_.slices_received;
  return true;
}

void OneShot::copy_from(int rank) {
  if (wanted_.count == 0) return;
  const Range range = posted(rank);
  copy_.cached(static_cast<std::byte*>(call_.out) + range.offset * element_bytes_, payload_of(rank),
               range.count * element_bytes_);
}

void OneShot::reduce() {
  if (wanted_.count == 0) return;
  for (int rank = 0; rank < wiring_.size; ++rank) {
    contributions_[static_cast<std::size_t>(rank)] =
        payload_of(rank) + wanted_.offset * element_bytes_;
  }
  auto* out = static_cast<std::byte*>(call_.out);
  vector_fold(call_.type, call_.op)(
      {&out, 1, contributions_.data(), static_cast<std::size_t>(wiring_.size),
       average_of(call_.type, wiring_.size)},
      wanted_.count);
}

bool OneShot::run() {
  post();
  const bool copies = !reduces(call_.collective);
  for (int rank = 0; rank < wiring_.size; ++rank) {
    if (rank != wiring_.rank && !wait_for(rank)) return false;
    if (copies) copy_from(rank);
  }
  if (!copies) reduce();
  return true;
}

}  // namespace rondo::detail

#include "cuda/api/operations_ahead.hpp"

#include "cuda/api/enqueue_turn.hpp"

namespace rondo::detail::gpu {

OperationsAhead::OperationsAhead(int device) : device_(device) {
  for (OwnedEvent& mark : marks_) mark = make_event(device);
}

void OperationsAhead::enqueued(std::uint64_t operations, api::Stream stream) {
  since_last_mark_ += operations;
  if (since_last_mark_ < kPerMark || api::is_capturing(stream)) return;
  since_last_mark_ = 0;
  const std::size_t marks = marks_.size();
  {
    const auto turn = turn_to_enqueue(device_);
    api::record(marks_[marked_ % marks].get(), stream);
  }
  ++marked_;
  if (marked_ >= marks) api::wait_for(marks_[marked_ % marks].get());  // the oldest
}

}  // namespace rondo::detail::gpu

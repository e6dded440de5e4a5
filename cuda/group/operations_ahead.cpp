#include "group/operations_ahead.hpp"

#include <rondo/errors.hpp>

namespace rondo::detail::gpu {

OperationsAhead::OperationsAhead() {
  for (api::Event& mark : marks_) mark = api::make_event(false);
}

OperationsAhead::~OperationsAhead() {
  try {
    for (const api::Event mark : marks_) api::destroy(mark);
  } catch (const CudaError&) {
    // The device has failed; the communicator's calls say so.
  }
}

void OperationsAhead::enqueued(std::uint64_t operations, api::Stream stream) {
  if (api::is_capturing(stream)) return;
  since_last_mark_ += operations;
  if (since_last_mark_ < kPerMark) return;
  since_last_mark_ = 0;
  const std::size_t marks = marks_.size();
  api::record(marks_[marked_ % marks], stream);
  ++marked_;
  if (marked_ >= marks) api::wait_for(marks_[marked_ % marks]);  // the oldest
}

}  // namespace rondo::detail::gpu

#include <rondo/cuda_gradient_reducer.hpp>

#include "base/owner_process.hpp"
#include "cuda/gradient/device_reducer.hpp"

namespace rondo::cuda {

GradientReducer::GradientReducer(Communicator& communicator, std::vector<Parameter> parameters,
                                 GradientOptions options)
    : reducer_(std::make_unique<detail::gpu::DeviceReducer>(communicator, std::move(parameters),
                                                            std::move(options))) {}
GradientReducer::GradientReducer(GradientReducer&&) noexcept = default;
GradientReducer& GradientReducer::operator=(GradientReducer&& other) noexcept {
  detail::keep_if_inherited(reducer_);
  reducer_ = std::move(other.reducer_);
  return *this;
}
GradientReducer::~GradientReducer() { detail::keep_if_inherited(reducer_); }

void GradientReducer::mark_ready(std::size_t parameter, Stream stream) {
  reducer_->mark_ready(parameter, stream);
}
void GradientReducer::set_samples(std::uint64_t samples) { reducer_->set_samples(samples); }
void GradientReducer::finish(Stream stream) { reducer_->finish(stream); }

void* GradientReducer::gradient(std::size_t parameter, DataType type) const {
  return reducer_->model().store().gradient_of_type(parameter, type);
}
std::size_t GradientReducer::count(std::size_t parameter) const {
  return reducer_->model().parameters().at(parameter).count;
}
int GradientReducer::layout() const { return reducer_->model().layout(); }
std::size_t GradientReducer::bucket_bytes() const { return reducer_->model().limits().bytes; }
std::vector<std::vector<std::size_t>> GradientReducer::buckets() const {
  return detail::members_of(reducer_->model().buckets());
}
const GradientStatistics& GradientReducer::statistics() const { return reducer_->statistics(); }

}  // namespace rondo::cuda

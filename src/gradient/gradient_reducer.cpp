#include <rondo/gradient_reducer.hpp>

#include "base/owner_process.hpp"
#include "gradient/host_reducer.hpp"

namespace rondo {

GradientReducer::GradientReducer(Communicator& communicator, std::vector<Parameter> parameters,
                                 GradientOptions options)
    : reducer_(std::make_unique<detail::HostReducer>(communicator, std::move(parameters),
                                                     std::move(options))) {}
GradientReducer::GradientReducer(GradientReducer&&) noexcept = default;
GradientReducer& GradientReducer::operator=(GradientReducer&& other) noexcept {
  detail::keep_if_inherited(reducer_);
  reducer_ = std::move(other.reducer_);
  return *this;
}
GradientReducer::~GradientReducer() { detail::keep_if_inherited(reducer_); }

void GradientReducer::mark_ready(std::size_t parameter) { reducer_->mark_ready(parameter); }
void GradientReducer::mark_ready(std::size_t parameter, const void* gradient, std::size_t count,
                                 DataType type) {
  reducer_->mark_ready(parameter, gradient, count, type);
}
void GradientReducer::set_samples(std::uint64_t samples) { reducer_->set_samples(samples); }
void GradientReducer::finish() { reducer_->finish(); }
void GradientReducer::join(const std::function<void()>& after_iteration) {
  reducer_->join(after_iteration);
}

GradientReducer::NoSync::NoSync(GradientReducer& reducer) : reducer_(*reducer.reducer_) {
  reducer_.pause();
}
GradientReducer::NoSync::~NoSync() { reducer_.go_on(); }

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
std::string GradientReducer::progress_place() const { return reducer_->progress_place(); }
const GradientStatistics& GradientReducer::statistics() const { return reducer_->statistics(); }

void GradientReducer::record_compute(std::string_view what,
                                     std::chrono::steady_clock::time_point begin,
                                     std::chrono::steady_clock::time_point end) {
  reducer_->record_compute(what, begin, end);
}
void GradientReducer::write_trace(const std::string& file) { reducer_->write_trace(file); }

}  // namespace rondo

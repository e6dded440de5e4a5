#include <rondo/gradient_reducer.hpp>

#include <fmt/format.h>

#include "gradient/host_reducer.hpp"

namespace rondo {

GradientReducer::GradientReducer(Communicator& communicator, std::vector<Parameter> parameters,
                                 GradientOptions options)
    : reducer_(std::make_unique<detail::HostReducer>(communicator, std::move(parameters),
                                                     std::move(options))) {}
GradientReducer::GradientReducer(GradientReducer&&) noexcept = default;
GradientReducer& GradientReducer::operator=(GradientReducer&&) noexcept = default;
GradientReducer::~GradientReducer() = default;

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

GradientReducer::NoSync::NoSync(GradientReducer& reducer) : reducer_(reducer) {
  reducer_.reducer_->pause(true);
}
GradientReducer::NoSync::~NoSync() { reducer_.reducer_->pause(false); }

void* GradientReducer::gradient(std::size_t parameter, DataType type) const {
  const std::vector<Parameter>& parameters = reducer_->parameters();
  if (parameter >= parameters.size()) {
    throw UsageError(fmt::format("gradient: there is no parameter {}; there are {}", parameter,
                                 parameters.size()));
  }
  if (type != parameters[parameter].type) {
    throw UsageError(fmt::format("gradient: parameter {} ('{}') is of type {}, not {}", parameter,
                                 parameters[parameter].name, name(parameters[parameter].type),
                                 name(type)));
  }
  return reducer_->store().gradient(parameter);
}
std::size_t GradientReducer::count(std::size_t parameter) const {
  return reducer_->parameters().at(parameter).count;
}
int GradientReducer::layout() const { return reducer_->layout(); }
std::size_t GradientReducer::bucket_bytes() const { return reducer_->bucket_bytes(); }

std::vector<std::vector<std::size_t>> GradientReducer::buckets() const {
  std::vector<std::vector<std::size_t>> result;
  for (const detail::Bucket& bucket : reducer_->store().buckets()) {
    std::vector<std::size_t>& members = result.emplace_back();
    for (const detail::Member& member : bucket.members) members.push_back(member.parameter);
  }
  return result;
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

#include <rondo/gradient_reducer.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rondo/gradient_reducer.hpp>

#include "adapters/c/handles.hpp"

namespace c = rondo::c_interface;

struct rondo_reducer {
  rondo_reducer(rondo::GradientReducer&& its_reducer, std::vector<rondo::DataType> its_types)
      : reducer(std::move(its_reducer)), types(std::move(its_types)) {}

  rondo::GradientReducer reducer;
  std::vector<rondo::DataType> types;
  std::optional<rondo::GradientReducer::NoSync> no_sync = std::nullopt;
};

namespace {

rondo::GradientReducer& reducer_of(rondo_reducer* reducer) {
  return c::required(reducer, "reducer").reducer;
}

// Parameter `index` of an array of structures that may be smaller or larger than this library's.
rondo::Parameter parameter_of(const rondo_parameter* all, std::size_t index) {
  const auto* place = reinterpret_cast<const std::byte*>(all) + index * all->struct_bytes;
  const rondo_parameter defaults{};
  const auto given = c::known_part<rondo_parameter>(
      *reinterpret_cast<const rondo_parameter*>(place), defaults, "rondo_parameter");
  rondo::Parameter parameter;
  parameter.name = &c::required(given.name, "the name of a parameter");
  parameter.gradient = given.gradient;
  parameter.count = given.count;
  parameter.type = c::type_of(given.type);
  parameter.value = given.value;
  parameter.compared = given.compared;
  parameter.value_count = given.value == nullptr && given.compared == nullptr ? 0 : given.count;
  return parameter;
}

rondo::BucketHook hook_of(rondo_bucket_hook hook, void* user) {
  if (hook == nullptr) return {};
  return [hook, user](rondo::Communicator& communicator, const rondo::GradientBucket& bucket) {
    rondo_comm comm(communicator);
    const rondo_bucket in_c{bucket.index, bucket.data, bucket.count,
                            static_cast<rondo_type>(bucket.type)};
    c::forget_error();
    const rondo_status status = hook(user, &comm, &in_c);
    if (status != RONDO_OK) {
      c::throw_again(status, fmt::format("the hook has returned {} for bucket {}",
                                         rondo_status_name(status), bucket.index));
    }
  };
}

rondo::GradientOptions options_of(const rondo_gradient_options* given) {
  rondo::GradientOptions options;
  if (given == nullptr) return options;
  const auto known = c::known_part<rondo_gradient_options>(*given, RONDO_GRADIENT_OPTIONS,
                                                           "rondo_gradient_options");
  options.bucket_bytes = known.bucket_bytes;
  options.first_bucket_bytes = known.first_bucket_bytes;
  options.average = c::checked<rondo::Average>(known.average, 3, "average");
  options.local = known.gradients_are_sums != 0 ? rondo::LocalGradient::sum_of_samples
                                                : rondo::LocalGradient::mean_of_samples;
  options.wire = c::checked<rondo::WireType>(known.wire, 3, "wire type");
  options.hook = hook_of(known.hook, known.user);
  options.allow_unused = known.allow_unused != 0;
  options.order_by_arrival = known.in_order_of_parameters == 0;
  options.layout_independent = known.layout_independent != 0;
  options.overlap = known.no_overlap == 0;
  if (known.progress_core != RONDO_LAST_CORE) options.progress_core = known.progress_core;
  options.algorithm = c::algorithm_of(known.algorithm);
  options.timeout = c::timeout_of(known.timeout_s);
  options.trace = known.trace != 0;
  return options;
}

}  // namespace

rondo_status rondo_reducer_create(rondo_comm* comm, const rondo_parameter* parameters,
                                  std::size_t count, const rondo_gradient_options* options,
                                  rondo_reducer** reducer) noexcept {
  if (reducer != nullptr) *reducer = nullptr;
  return c::status_of([&] {
    rondo_reducer*& result = c::required(reducer, "reducer");
    if (count > 0) static_cast<void>(c::required(parameters, "parameters"));
    std::vector<rondo::Parameter> all;
    std::vector<rondo::DataType> types;
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(parameter_of(parameters, i));
      types.push_back(all.back().type);
    }
    result =
        std::make_unique<rondo_reducer>(
            rondo::GradientReducer(c::communicator_of(comm), std::move(all), options_of(options)),
            std::move(types))
            .release();
  });
}

void rondo_reducer_destroy(rondo_reducer* reducer) noexcept { delete reducer; }

rondo_status rondo_reducer_mark_ready(rondo_reducer* reducer, std::size_t parameter) noexcept {
  return c::status_of([&] { reducer_of(reducer).mark_ready(parameter); });
}

rondo_status rondo_reducer_mark_ready_at(rondo_reducer* reducer, std::size_t parameter,
                                         const void* gradient, std::size_t count,
                                         rondo_type type) noexcept {
  return c::status_of(
      [&] { reducer_of(reducer).mark_ready(parameter, gradient, count, c::type_of(type)); });
}

rondo_status rondo_reducer_finish(rondo_reducer* reducer) noexcept {
  return c::status_of([&] { reducer_of(reducer).finish(); });
}

rondo_status rondo_reducer_set_samples(rondo_reducer* reducer, std::uint64_t samples) noexcept {
  return c::status_of([&] { reducer_of(reducer).set_samples(samples); });
}

rondo_status rondo_reducer_begin_no_sync(rondo_reducer* reducer) noexcept {
  return c::status_of([&] {
    rondo_reducer& handle = c::required(reducer, "reducer");
    if (handle.no_sync) throw rondo::UsageError("rondo_reducer_begin_no_sync was called twice");
    handle.no_sync.emplace(handle.reducer);
  });
}

rondo_status rondo_reducer_end_no_sync(rondo_reducer* reducer) noexcept {
  return c::status_of([&] {
    rondo_reducer& handle = c::required(reducer, "reducer");
    if (!handle.no_sync) {
      throw rondo::UsageError("rondo_reducer_end_no_sync without rondo_reducer_begin_no_sync");
    }
    handle.no_sync.reset();
  });
}

rondo_status rondo_reducer_join(rondo_reducer* reducer, void (*after_iteration)(void* user),
                                void* user) noexcept {
  return c::status_of([&] {
    std::function<void()> after;
    if (after_iteration != nullptr) after = [=] { after_iteration(user); };
    reducer_of(reducer).join(after);
  });
}

void* rondo_reducer_gradient(const rondo_reducer* reducer, std::size_t parameter) noexcept {
  if (parameter >= reducer->types.size()) return nullptr;
  void* gradient = nullptr;
  c::status_of([&] { gradient = reducer->reducer.gradient(parameter, reducer->types[parameter]); });
  return gradient;
}

std::size_t rondo_reducer_count(const rondo_reducer* reducer, std::size_t parameter) noexcept {
  return parameter < reducer->types.size() ? reducer->reducer.count(parameter) : 0;
}

int rondo_reducer_layout(const rondo_reducer* reducer) noexcept {
  return reducer->reducer.layout();
}

std::size_t rondo_reducer_bucket_bytes(const rondo_reducer* reducer) noexcept {
  return reducer->reducer.bucket_bytes();
}

std::size_t rondo_reducer_bucket_count(const rondo_reducer* reducer) noexcept {
  std::size_t count = 0;
  c::status_of([&] { count = reducer->reducer.buckets().size(); });
  return count;
}

std::size_t rondo_reducer_bucket(const rondo_reducer* reducer, std::size_t index,
                                 std::size_t* parameters, std::size_t room) noexcept {
  std::size_t count = 0;
  c::status_of([&] {
    const std::vector<std::vector<std::size_t>> buckets = reducer->reducer.buckets();
    if (index >= buckets.size()) return;
    count = buckets[index].size();
    for (std::size_t i = 0; i < count && i < room; ++i) parameters[i] = buckets[index][i];
  });
  return count;
}

const char* rondo_reducer_progress_place(const rondo_reducer* reducer) noexcept {
  thread_local std::string kept;
  const char* place = "";
  c::status_of([&] { place = c::keep(kept, reducer->reducer.progress_place()); });
  return place;
}

rondo_status rondo_reducer_statistics(const rondo_reducer* reducer,
                                      rondo_gradient_statistics* statistics) noexcept {
  return c::status_of([&] {
    const rondo::GradientStatistics& last = c::required(reducer, "reducer").reducer.statistics();
    c::give<rondo_gradient_statistics>(
        statistics,
        {0, last.iteration, last.bytes, last.buckets.size(), last.compute_us, last.transfer_us,
         last.exposed_us, last.hidden_fraction, last.reordered ? 1U : 0U},
        "rondo_gradient_statistics");
  });
}

std::size_t rondo_reducer_arrival(const rondo_reducer* reducer, std::size_t* parameters,
                                  std::size_t room) noexcept {
  const std::vector<std::uint32_t>& arrival = reducer->reducer.statistics().arrival;
  std::copy_n(arrival.begin(), std::min(room, arrival.size()), parameters);
  return arrival.size();
}

rondo_status rondo_reducer_bucket_statistics(const rondo_reducer* reducer, std::size_t index,
                                             rondo_bucket_statistics* statistics) noexcept {
  return c::status_of([&] {
    const auto& buckets = c::required(reducer, "reducer").reducer.statistics().buckets;
    if (index >= buckets.size()) {
      throw rondo::UsageError(fmt::format(
          "rondo_reducer_bucket_statistics: bucket {} is none of {}", index, buckets.size()));
    }
    const rondo::BucketStatistics& bucket = buckets[index];
    c::give<rondo_bucket_statistics>(
        statistics, {0, bucket.bytes, bucket.ready_us, bucket.start_us, bucket.end_us},
        "rondo_bucket_statistics");
  });
}

rondo_status rondo_reducer_record_compute(rondo_reducer* reducer, const char* what,
                                          std::int64_t begin_ns, std::int64_t end_ns) noexcept {
  return c::status_of([&] {
    using Clock = std::chrono::steady_clock;  // reads CLOCK_MONOTONIC
    const auto at = [](std::int64_t ns) { return Clock::time_point(std::chrono::nanoseconds(ns)); };
    reducer_of(reducer).record_compute(&c::required(what, "what"), at(begin_ns), at(end_ns));
  });
}

rondo_status rondo_reducer_write_trace(rondo_reducer* reducer, const char* file) noexcept {
  return c::status_of([&] { reducer_of(reducer).write_trace(&c::required(file, "file")); });
}

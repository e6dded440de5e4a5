#include "bench/sim/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "gradient/bucket_plan.hpp"

namespace rondo::sim {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Iteration {
  std::optional<double> begin_us;  // of the first span of computation, which is of the forward pass
  double end_us = 0;               // of the last one
  std::vector<std::pair<double, std::size_t>> buckets;  // when each was ready, and its bytes
};

std::map<int, Iteration> iterations_of(const nlohmann::json& events) {
  std::map<int, Iteration> iterations;
  for (const nlohmann::json& event : events) {
    const std::string kind = event.value("ph", "");
    if (event.value("pid", -1) != 0 || !event.contains("ts") || !event.contains("args")) continue;
    Iteration& its = iterations[event.at("args").value("iteration", 0)];
    const auto begin = event.at("ts").get<double>();
    const std::string row = event.value("cat", "");
    if (row == "compute") {
      its.begin_us = std::min(its.begin_us.value_or(begin), begin);
      its.end_us = std::max(its.end_us, begin + event.at("dur").get<double>());
    } else if (row == "queue" && kind == "b") {
      its.buckets.emplace_back(begin, event.at("args").at("bytes").get<std::size_t>());
    }
  }
  return iterations;
}

Job median_of(const std::map<int, Iteration>& iterations) {
  const std::size_t buckets = iterations.empty() ? 0 : iterations.rbegin()->second.buckets.size();
  std::vector<double> computed;
  std::vector<std::vector<double>> ready(buckets);
  Job job;
  for (const auto& [number, its] : iterations) {
    if (!its.begin_us || its.buckets.size() != buckets) continue;
    computed.push_back(its.end_us - *its.begin_us);
    job.gradients.resize(buckets);
    for (std::size_t i = 0; i < buckets; ++i) {
      ready[i].push_back(its.buckets[i].first - *its.begin_us);
      job.gradients[i].bytes = its.buckets[i].second;
    }
  }
  if (buckets == 0 || computed.empty()) {
    throw std::runtime_error(
        "rank 0 has no iteration with computation and buckets; is this what "
        "GradientReducer::write_trace() wrote?");
  }
  job.computed_us = median(computed);
  for (std::size_t i = 0; i < buckets; ++i) job.gradients[i].ready_us = median(ready[i]);
  return job;
}

}  // namespace

Job job_of(const overlap::Model& model, double backward_us, double forward_us) {
  const std::vector<double> ready = overlap::ready_times(model, backward_us);
  Job job{forward_us + backward_us, {}};
  for (std::size_t i = model.size(); i-- > 0;) {
    job.gradients.push_back({model[i].count * sizeof(float), forward_us + ready[i]});
  }
  return job;
}

Job read_trace(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(fmt::format("'{}' cannot be read", file));
  try {
    return median_of(iterations_of(nlohmann::json::parse(in).at("traceEvents")));
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("'{}': {}", file, error.what()));
  }
}

StepTime step_time(const Job& job, std::size_t bucket_bytes, double slowdown,
                   const CallTime& call) {
  constexpr std::size_t kSmallCallBytes = 64;
  std::vector<detail::ParameterShape> shapes;
  std::vector<std::uint32_t> order;
  for (const Gradient& gradient : job.gradients) {
    order.push_back(static_cast<std::uint32_t>(shapes.size()));
    shapes.push_back({gradient.bytes / sizeof(float), DataType::f32});
  }
  StepTime time;
  const auto add = [&](double start, double us) {
    time.call_us += us;
    return start + us;
  };
  const double small = call(kSmallCallBytes);
  double now = add(slowdown * job.gradients.front().ready_us, small);
  for (const detail::Bucket& bucket :
       detail::plan_buckets(shapes, order, {bucket_bytes, bucket_bytes})) {
    double ready = 0;
    for (const detail::Member& member : bucket.members) {
      ready = std::max(ready, job.gradients[member.parameter].ready_us);
    }
    now = add(std::max(now, slowdown * ready), call(bucket.count * sizeof(float)));
  }
  const double computed = slowdown * job.computed_us;
  time.step_us = add(std::max(now, computed), small);
  time.exposed_us = time.step_us - computed;
  return time;
}

}  // namespace rondo::sim

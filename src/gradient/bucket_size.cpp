#include "gradient/bucket_size.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <vector>

#include "base/index.hpp"
#include "base/log.hpp"

namespace rondo::detail {
namespace {

constexpr std::size_t kLeastBytes = std::size_t{8} << 10U;
constexpr std::size_t kMostBytes = std::size_t{64} << 20U;
constexpr std::size_t kMostProbeBytes = std::size_t{4} << 20U;

constexpr double kLongUs = 4000;

}  // namespace

double call_us(Communicator& communicator, std::size_t bytes) {
  const int rounds = bytes < 1024 ? 15 : 3;
  RegisteredMemory<float> buffer =
      communicator.allocate<float>(bytes / sizeof(float));  // as buckets
  CallOptions options;
  options.background = true;
  communicator.all_reduce(buffer, ReduceOp::sum, options);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    communicator.all_reduce(buffer, ReduceOp::sum, options);
    const auto end = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration<double, std::micro>(end - start).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  std::array<double, 1> median = {times[Index(rounds) / 2]};
  communicator.broadcast(median, 0);
  return median[0];
}

CallCost measure_calls(const CallTime& call_us) {
  CallCost cost;
  cost.fixed_us = std::max(call_us(sizeof(float)), 0.1);
  // Until a call takes long enough to compute a rate from it.
  std::size_t bytes = std::size_t{64} << 10U;
  double us = call_us(bytes);
  while (us < std::max(kLongUs, 8 * cost.fixed_us) && bytes < kMostProbeBytes) {
    bytes *= 4;
    us = call_us(bytes);
  }
  cost.bytes_per_us = static_cast<double>(bytes) / std::max(us - cost.fixed_us, us / 4);
  return cost;
}

std::size_t bucket_bytes_for(const CallCost& cost, std::size_t model_bytes) {
  const double best =
      std::sqrt(static_cast<double>(model_bytes) * cost.fixed_us * cost.bytes_per_us) / 2;
  const double nearest = std::exp2(std::round(std::log2(std::max(best, 1.0))));
  return std::clamp(static_cast<std::size_t>(std::min(nearest, 1e9)), kLeastBytes, kMostBytes);
}

BucketLimits limits_for(const GradientOptions& options, std::span<const ParameterShape> shapes,
                        const Communicator& communicator, const CallTime& call_us) {
  BucketLimits limits;
  limits.bytes = options.bucket_bytes;
  if (limits.bytes == 0) {
    std::size_t model_bytes = 0;
    for (const ParameterShape& shape : shapes) model_bytes += shape.count * size_of(shape.type);
    const CallCost cost = measure_calls(call_us);
    limits.bytes = bucket_bytes_for(cost, model_bytes);
    log(LogLevel::info,
        "rank {}: buckets of up to {} KiB: an all_reduce costs {:.1f} us and moves {:.0f} bytes a "
        "us, "
        "and gradients have {} bytes",
        communicator.rank(), limits.bytes >> 10U, cost.fixed_us, cost.bytes_per_us, model_bytes);
  }
  limits.first_bytes = options.first_bucket_bytes != 0 ? options.first_bucket_bytes
                                                       : std::max<std::size_t>(limits.bytes / 4, 1);
  limits.aligned_to_ranks =
      options.layout_independent && communicator.size() > 1 ? communicator.size() : 0;
  return limits;
}

}  // namespace rondo::detail

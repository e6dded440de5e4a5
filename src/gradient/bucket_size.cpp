#include "gradient/bucket_size.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <vector>

namespace rondo::detail {
namespace {

constexpr std::size_t kLeastBytes = std::size_t{8} << 10U;
constexpr std::size_t kMostBytes = std::size_t{64} << 20U;
constexpr std::size_t kMostProbeBytes = std::size_t{4} << 20U;

// The median of a few calls as buckets make them; rank 0's.
double call_us(Communicator& communicator, std::vector<float>& buffer, std::size_t bytes,
               int rounds) {
  const auto part = std::span(buffer).first(bytes / sizeof(float));
  CallOptions options;
  options.background = true;
  communicator.all_reduce(part, ReduceOp::sum, options);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    communicator.all_reduce(part, ReduceOp::sum, options);
    const auto end = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration<double, std::micro>(end - start).count());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  std::array<double, 1> median = {times[static_cast<std::size_t>(rounds) / 2]};
  communicator.broadcast(median, 0);
  return median[0];
}

}  // namespace

CallCost measure_calls(Communicator& communicator) {
  constexpr double kLongUs = 4000;
  std::vector<float> buffer(kMostProbeBytes / sizeof(float));
  CallCost cost;
  cost.fixed_us = std::max(call_us(communicator, buffer, sizeof(float), 15), 0.1);
  // Until a call is long enough to tell a rate by.
  std::size_t bytes = std::size_t{64} << 10U;
  double us = call_us(communicator, buffer, bytes, 3);
  while (us < std::max(kLongUs, 8 * cost.fixed_us) && bytes < kMostProbeBytes) {
    bytes *= 4;
    us = call_us(communicator, buffer, bytes, 3);
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

}  // namespace rondo::detail

#include "exchange_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace lenet::systems {

ExchangeTime measure_exchange(rondo::Communicator& comm, std::size_t bytes, int times,
                              const std::function<void()>& exchange) {
  using Clock = std::chrono::steady_clock;
  constexpr int kWarmUps = 3;
  std::vector<double> us;
  for (int i = -kWarmUps; i < times; ++i) {
    comm.barrier();
    const auto start = Clock::now();
    exchange();
    if (i >= 0)
      us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  comm.all_reduce(us, rondo::ReduceOp::max);
  std::sort(us.begin(), us.end());
  const auto at = [&](double part) {
    return us[static_cast<std::size_t>(part * static_cast<double>(us.size() - 1))];
  };
  return {bytes, at(0.5), at(0.05), at(0.95)};
}

void print(const ExchangeTime& measured, const std::string& how) {
  fmt::print("exchange of {} bytes by {}: {:.3f} ms ({:.3f} .. {:.3f})\n", measured.bytes, how,
             measured.median_us / 1e3, measured.low_us / 1e3, measured.high_us / 1e3);
}

}  // namespace lenet::systems

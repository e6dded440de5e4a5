// How long ranks take to exchange gradients, without computing any.
#pragma once

#include <cstddef>
#include <functional>
#include <rondo/communicator.hpp>
#include <string>

namespace lenet::systems {

struct ExchangeTime {
  std::size_t bytes = 0;  // of the gradients
  // On the slowest rank: the median, and the range of the middle 90 %.
  double median_us = 0;
  double low_us = 0;
  double high_us = 0;
};

// Collective: all ranks of `comm` call `exchange`, which exchanges gradients of `bytes`, so many
// times, and a few times before.
ExchangeTime measure_exchange(rondo::Communicator& comm, std::size_t bytes, int times,
                              const std::function<void()>& exchange);

void print(const ExchangeTime& measured, const std::string& how);

}  // namespace lenet::systems

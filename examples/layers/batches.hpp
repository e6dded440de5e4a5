// Which samples a rank sees, and when.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samples.hpp"

namespace lenet {

// The order of the samples in an epoch: the same on every rank, from seed and epoch alone.
std::vector<std::uint32_t> shuffled(std::size_t count, std::uint64_t seed, int epoch);

// A rank's samples of one minibatch, as the model takes them.
struct Batch {
  std::vector<float> inputs;  // one sample after the other
  std::vector<std::uint8_t> labels;

  void load(const Samples& samples, std::span<const std::uint32_t> chosen);
};

// Minibatch number `index` of an epoch: `batch_size` samples, fewer at the end.
std::span<const std::uint32_t> minibatch(std::span<const std::uint32_t> order, std::size_t index,
                                         std::size_t batch_size);

// How many minibatches an epoch has.
std::size_t minibatches(std::size_t samples, std::size_t batch_size);

// The part of `samples` that rank `rank` of `size` takes; parts differ by at most one sample.
std::span<const std::uint32_t> share(std::span<const std::uint32_t> samples, int rank, int size);
// The part that `rank` takes if they are dealt in the proportion of `shares`, by rank: to within a
// sample.
std::span<const std::uint32_t> share(std::span<const std::uint32_t> samples,
                                     std::span<const double> shares, int rank);

}  // namespace lenet

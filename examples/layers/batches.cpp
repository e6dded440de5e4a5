#include "batches.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <rondo/chunk.hpp>

namespace lenet {

std::vector<std::uint32_t> shuffled(std::size_t count, std::uint64_t seed, int epoch) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::seed_seq mixed{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U),
                      static_cast<std::uint32_t>(epoch)};
  std::mt19937_64 random(mixed);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

void Batch::load(const Samples& samples, std::span<const std::uint32_t> chosen) {
  inputs.resize(chosen.size() * samples.input_elems);
  labels.resize(chosen.size());
  const std::span<float> all = inputs;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    samples.read_input(chosen[i], all.subspan(i * samples.input_elems, samples.input_elems));
    labels[i] = samples.labels[chosen[i]];
  }
}

std::span<const std::uint32_t> minibatch(std::span<const std::uint32_t> order, std::size_t index,
                                         std::size_t batch_size) {
  const std::size_t begin = index * batch_size;
  return order.subspan(begin, std::min(batch_size, order.size() - begin));
}

std::size_t minibatches(std::size_t samples, std::size_t batch_size) {
  return (samples + batch_size - 1) / batch_size;
}

std::span<const std::uint32_t> share(std::span<const std::uint32_t> samples, int rank, int size) {
  const rondo::Range range = rondo::chunk_range(samples.size(), static_cast<std::uint64_t>(size),
                                                static_cast<std::uint64_t>(rank));
  return samples.subspan(range.offset, range.count);
}

std::span<const std::uint32_t> share(std::span<const std::uint32_t> samples,
                                     std::span<const double> shares, int rank) {
  // Added from left to right, so that no border lies before another.
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  const auto border = [&](int ranks) {
    const double before = std::accumulate(shares.begin(), shares.begin() + ranks, 0.0);
    return static_cast<std::size_t>(
        std::llround(before / all * static_cast<double>(samples.size())));
  };
  return samples.subspan(border(rank), border(rank + 1) - border(rank));
}

}  // namespace lenet

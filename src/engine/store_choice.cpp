#include "engine/store_choice.hpp"

#include <algorithm>
#include <bit>

namespace rondo::detail {
namespace {

// Two copies in a row are measured each time, and the shorter one counts: in the other the thread
// may have been interrupted.
constexpr std::uint32_t kMeasured = 2;
constexpr std::uint32_t kBetweenMeasured = 16;
// The first copies of a trial find the lines as the other stores have left them.
constexpr std::uint32_t kTrial = 2 + kMeasured;
// The others are tried again after so many copies; sooner, but not before the first of these, if
// the chosen ones have become slower by this factor.
constexpr std::uint32_t kLeastBetweenTrials = 128;
constexpr std::uint32_t kMostBetweenTrials = 1024;
constexpr double kSlower = 1.5;
// How much longer the reader takes for a byte that comes from memory in place of a cache.
constexpr double kReadingMemoryNs = 0.08;

Stores other_than(Stores stores) {
  return stores == Stores::cached ? Stores::non_temporal : Stores::cached;
}

// Of a byte: what its writer takes, and what its reader takes more.
double cost(Stores stores, double ns_per_byte) {
  return ns_per_byte + (stores == Stores::non_temporal ? kReadingMemoryNs : 0);
}

}  // namespace

StoreChoice::OfSize& StoreChoice::of(std::size_t bytes) {
  return by_size_[static_cast<std::size_t>(std::bit_width(bytes))];
}

StoreChoice::Next StoreChoice::next(std::size_t bytes) {
  if (bytes < kLeastBytes) return {};
  OfSize& size = of(bytes);
  const std::uint32_t number = size.copies++;
  if (size.tries_others) return {other_than(size.chosen), number >= kTrial - kMeasured};
  return {size.chosen, number % kBetweenMeasured >= kBetweenMeasured - kMeasured};
}

void StoreChoice::note(std::size_t bytes, double ns) {
  OfSize& size = of(bytes);
  const double ns_per_byte = ns / static_cast<double>(bytes);
  size.half_measured = !size.half_measured;
  if (size.half_measured) {
    size.least_ns_per_byte = ns_per_byte;
    return;
  }
  const double least = std::min(size.least_ns_per_byte, ns_per_byte);
  if (size.tries_others) {
    const Stores others = other_than(size.chosen);
    if (cost(others, least) < cost(size.chosen, size.chosen_ns_per_byte)) {
      size.chosen = others;
      size.chosen_ns_per_byte = least;
    }
    size.tries_others = false;
    size.copies = 0;
    return;
  }
  const bool never_tried = size.chosen_ns_per_byte == 0;
  const bool slower = least > kSlower * size.chosen_ns_per_byte;
  if (never_tried || size.copies >= kMostBetweenTrials ||
      (slower && size.copies >= kLeastBetweenTrials)) {
    size.chosen_ns_per_byte = least;
    size.tries_others = true;
    size.copies = 0;
  } else {
    size.chosen_ns_per_byte = std::min(size.chosen_ns_per_byte, least);
  }
}

}  // namespace rondo::detail

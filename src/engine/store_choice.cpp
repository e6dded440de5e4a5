#include "engine/store_choice.hpp"

#include <algorithm>
#include <bit>

namespace rondo::detail {
namespace {

// The shorter one of two measured writes counts: in the other the thread may have been interrupted.
constexpr std::uint32_t kMeasured = 2;
// A prime number, so that no regular pattern of calls has always the same writes measured.
constexpr std::uint32_t kMeasuringPeriod = 17;
// The first writes of a trial are not measured: those to an outbox, which is two places in turn,
// find the lines as the other stores have left them. Those to stages and slots do so for longer.
constexpr std::uint32_t kTrialWrites = 2 + kMeasured;
// The others are tried after so many writes; after the smaller number already, if the chosen ones
// have become slower.
constexpr std::uint32_t kMostBetweenTrials = 1024;
constexpr std::uint32_t kLeastBetweenTrials = 128;
// How much longer a reader takes for a byte that comes from memory, and not from a cache: so much
// on an AMD EPYC (docs/performance.md).
constexpr std::uint64_t kReadingMemoryPsPerByte = 80;

// Whether one takes more than half as long again as the other.
bool is_much_slower(std::uint64_t one, std::uint64_t other) { return 2 * one > 3 * other; }
// Whether one costs less than nine tenths of the other: what is as good is not changed.
bool is_better(std::uint64_t one, std::uint64_t other) { return 10 * one < 9 * other; }

Stores other_than(Stores stores) {
  return stores == Stores::cached ? Stores::non_temporal : Stores::cached;
}

// Returns what a byte costs the writer and the reader, except for what the reader always takes.
std::uint64_t cost(Stores stores, std::uint64_t writing_ps_per_byte) {
  return writing_ps_per_byte + (stores == Stores::non_temporal ? kReadingMemoryPsPerByte : 0);
}

}  // namespace

StoreChoice::OfSize& StoreChoice::of(std::size_t bytes) {
  return by_size_[static_cast<std::size_t>(std::bit_width(bytes))];
}

StoreChoice::Next StoreChoice::next(std::size_t bytes) {
  if (bytes < kLeastBytes) return {};
  OfSize& size = of(bytes);
  const std::uint32_t number = size.writes++;
  if (size.tries_others) {
    return {other_than(size.chosen), number >= kTrialWrites - kMeasured};
  }
  return {size.chosen, number % kMeasuringPeriod >= kMeasuringPeriod - kMeasured};
}

void StoreChoice::note(std::size_t bytes, std::uint64_t ns) {
  OfSize& size = of(bytes);
  const std::uint64_t ps_per_byte = 1000 * ns / bytes;
  if (!size.first_ps_per_byte) {
    size.first_ps_per_byte = ps_per_byte;
    return;
  }
  const std::uint64_t least = std::min(*size.first_ps_per_byte, ps_per_byte);
  size.first_ps_per_byte.reset();
  if (size.tries_others) {
    end_trial(size, least);
  } else {
    judge_chosen(size, least);
  }
}

void StoreChoice::end_trial(OfSize& size, std::uint64_t others_ps_per_byte) {
  const Stores others = other_than(size.chosen);
  if (is_better(cost(others, others_ps_per_byte), cost(size.chosen, *size.chosen_ps_per_byte))) {
    size.chosen = others;
    size.chosen_ps_per_byte = others_ps_per_byte;
  }
  size.tries_others = false;
  size.writes = 0;
}

void StoreChoice::judge_chosen(OfSize& size, std::uint64_t ps_per_byte) {
  const std::uint64_t before = size.chosen_ps_per_byte.value_or(ps_per_byte);
  const bool is_slower = size.writes >= kLeastBetweenTrials && is_much_slower(ps_per_byte, before);
  const bool never_tried = !size.chosen_ps_per_byte;
  size.chosen_ps_per_byte = is_slower ? ps_per_byte : std::min(before, ps_per_byte);
  if (never_tried || is_slower || size.writes >= kMostBetweenTrials) {
    size.tries_others = true;
    size.writes = 0;
  }
}

}  // namespace rondo::detail

#include "gradient/opening.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace rondo::detail {
namespace {

constexpr std::uint64_t samples_in(std::uint64_t part) { return part > 2 ? part - 2 : 0; }

}  // namespace

Opening::Opening(int rank, int size)
    : rank_(static_cast<std::size_t>(rank)),
      words_(2 * static_cast<std::size_t>(size)),
      words_before_(words_.size()) {}

std::span<std::uint64_t> Opening::say(const OpeningWords& mine) {
  std::swap(words_, words_before_);
  std::fill(words_.begin(), words_.end(), 0);
  words_[rank_] = mine.part;
  words_[size() + rank_] = mine.passes;
  return words_;
}

std::size_t Opening::first_taking_part() const {
  std::size_t first = 0;
  while (first < size() && !takes_part(first)) ++first;
  return first;
}

bool Opening::all_have_joined() const { return first_taking_part() == size(); }

TakingPart Opening::who() const {
  TakingPart who{size(), 0, 0, samples_in(words_[rank_])};
  for (std::size_t rank = 0; rank < size(); ++rank) {
    who.live += takes_part(rank) ? 1 : 0;
    who.samples += samples_in(words_[rank]);
  }
  return who;
}

Complaint Opening::different_passes() const {
  const std::size_t first = first_taking_part();
  for (std::size_t rank = first + 1; rank < size(); ++rank) {
    if (!takes_part(rank) || passes_of(rank) == passes_of(first)) continue;
    return {Wrong::passes, static_cast<int>(rank), 0, 0};
  }
  return {};
}

std::string Opening::text_of_passes(int rank) const {
  const std::size_t first = first_taking_part();
  return fmt::format(
      "rank {}: finish: it made {} passes under no_sync since the iteration before, and rank {} "
      "made {}. Make as many on all ranks, or say how many samples each rank's gradients stand "
      "for (Average::samples)",
      rank, passes_of(static_cast<std::size_t>(rank)), first, passes_of(first));
}

int Opening::last_to_join() const {
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (words_before_[rank] > kJoined) return static_cast<int>(rank);
  }
  return 0;
}

}  // namespace rondo::detail

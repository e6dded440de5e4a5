// Ranks exchange this as an iteration opens: who takes part, how many samples each has, and
// how many passes each made under no_sync. Only computes: its user exchanges the words.
//
// The vector has two words for each rank. Each rank sets its own two and leaves the others 0; the
// maximum over the ranks then holds the words of all. Four ranks with 8, 8, 4 samples and one that
// has joined:
//
//   rank 0 says   10 0 0 0 | 1 0 0 0      (8 + 2; one pass)
//   rank 3 says    0 0 0 1 | 0 0 0 0      (joined)
//   all get       10 10 6 1 | 1 1 1 0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gradient/averaging.hpp"
#include "gradient/complaint.hpp"

namespace rondo::detail {

inline constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 60U;

// The words of one rank.
struct OpeningWords {
  std::uint64_t part = 0;  // 0: nothing was said; 1: it has joined; else two more than its samples
  std::uint64_t passes = 0;

  static OpeningWords of_joined(std::uint64_t passes) { return {1, passes}; }
  static OpeningWords of_samples(std::uint64_t samples, std::uint64_t passes) {
    return {samples + 2, passes};
  }
};

class Opening {
 public:
  Opening(int rank, int size);

  // Returns the words to be exchanged by maximum, in place. Those of the opening before are kept.
  std::span<std::uint64_t> say(const OpeningWords& mine);

  // From here on: only after the words have been exchanged.
  [[nodiscard]] bool takes_part(std::size_t rank) const { return words_[rank] > kJoined; }
  [[nodiscard]] bool all_have_joined() const;
  [[nodiscard]] TakingPart who() const;
  // A rank that made another number of passes than the first that takes part; the same on all
  // ranks.
  [[nodiscard]] Complaint different_passes() const;
  [[nodiscard]] std::string text_of_passes(int rank) const;
  // When all have joined: one of the ranks that joined last, and so took part in every iteration.
  [[nodiscard]] int last_to_join() const;

 private:
  static constexpr std::uint64_t kJoined = 1;

  [[nodiscard]] std::size_t size() const { return words_.size() / 2; }
  [[nodiscard]] std::uint64_t passes_of(std::size_t rank) const { return words_[size() + rank]; }
  [[nodiscard]] std::size_t first_taking_part() const;

  std::size_t rank_;
  std::vector<std::uint64_t> words_;  // `part` of each rank, then `passes` of each rank
  std::vector<std::uint64_t> words_before_;
};

}  // namespace rondo::detail

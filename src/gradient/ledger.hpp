// Which gradients of an iteration have come, and which buckets are complete. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gradient/bucket_plan.hpp"

namespace rondo::detail {

class Ledger {
 public:
  explicit Ledger(std::size_t parameters) : marked_(parameters), bucket_of_(parameters) {
    arrival_.reserve(parameters);
  }

  // Sets the buckets, between two iterations.
  void set_buckets(std::span<const Bucket> buckets);
  // An iteration begins: no gradient has come.
  void begin();

  // Returns false if the gradient has been marked before in this iteration.
  bool mark(std::size_t parameter);

  [[nodiscard]] bool marked(std::size_t parameter) const { return marked_[parameter] != 0; }
  [[nodiscard]] bool complete(std::size_t bucket) const { return missing_counts_[bucket] == 0; }
  [[nodiscard]] std::size_t bucket_of(std::size_t parameter) const { return bucket_of_[parameter]; }
  // The gradients in the order of their marks.
  [[nodiscard]] std::span<const std::uint32_t> arrival() const { return arrival_; }

 private:
  std::vector<char> marked_;
  std::vector<std::size_t> bucket_of_;
  std::vector<std::size_t> member_counts_;   // how many gradients each bucket has
  std::vector<std::size_t> missing_counts_;  // how many of them have not come yet
  std::vector<std::uint32_t> arrival_;
};

}  // namespace rondo::detail

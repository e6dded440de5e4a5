#include "gradient/ledger.hpp"

#include <algorithm>

namespace rondo::detail {

void Ledger::set_buckets(std::span<const Bucket> buckets) {
  member_counts_.assign(buckets.size(), 0);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    member_counts_[b] = buckets[b].members.size();
    for (const Member& member : buckets[b].members) bucket_of_[member.parameter] = b;
  }
  missing_counts_ = member_counts_;
}

void Ledger::begin() {
  std::fill(marked_.begin(), marked_.end(), 0);
  std::copy(member_counts_.begin(), member_counts_.end(), missing_counts_.begin());
  arrival_.clear();
}

bool Ledger::mark(std::size_t parameter) {
  if (marked_[parameter] != 0) return false;
  marked_[parameter] = 1;
  --missing_counts_[bucket_of_[parameter]];
  arrival_.push_back(static_cast<std::uint32_t>(parameter));
  return true;
}

}  // namespace rondo::detail

// Which algorithm costs least by the model (plan/cost_model.hpp): a table for each collective
// between hosts, computed when ranks join.
#pragma once

#include <array>
#include <cstdint>

#include <rondo/types.hpp>

#include "base/index.hpp"
#include "plan/by_size.hpp"
#include "plan/cost_model.hpp"

namespace rondo::detail {

class ModelTable {
 public:
  explicit ModelTable(const CostPlace& place);

  // Of a collective that does not go pairwise, among all ranks.
  [[nodiscard]] Algorithm at(Collective collective, std::uint64_t bytes) const {
    return by_collective_[Index(collective)].at(bytes, Algorithm::ring);
  }
  // Of a hierarchical all_reduce or barrier.
  [[nodiscard]] BetweenHosts between_hosts(std::uint64_t bytes) const {
    return between_hosts_.at(bytes);
  }

 private:
  std::array<BySize<Algorithm>, kCollectiveCount> by_collective_;
  BySize<BetweenHosts> between_hosts_;
};

}  // namespace rondo::detail

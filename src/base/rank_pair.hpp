#pragma once

namespace rondo::detail {

inline constexpr int kAnyPeer = -1;

// A directed edge between two ranks.
struct RankPair {
  int from = 0;
  int to = 0;

  friend bool operator==(const RankPair&, const RankPair&) = default;
};

}  // namespace rondo::detail

// Lets one rank of a host at a time look how much memory is left, and reserve its own. Ranks that need memory at the same
// moment, in the same call say, would else each find room for their piece where there is none for all of them.
#pragma once

#include <cstdint>

namespace rondo::detail {

// Lies in memory that the ranks share; zeroed memory is a turn that nobody has.
class ReservingTurn {
 public:
  // Returns when no other rank has the turn, and whether this one has it now: not if another has kept it for a second, as one
  // does that was stopped or killed in the middle. The caller then goes on without.
  [[nodiscard]] bool take();
  // By a rank that has the turn.
  void give_back();

 private:
  // 1 while a rank has the turn. take() stores 1 by a compare-exchange with acquire, which pairs with give_back()'s release of 0.
  alignas(64) std::uint32_t taken_ = 0;
};

class ReservingScope {
 public:
  explicit ReservingScope(ReservingTurn& turn) : turn_(turn), has_it_(turn.take()) {}
  ReservingScope(const ReservingScope&) = delete;
  ReservingScope& operator=(const ReservingScope&) = delete;
  ~ReservingScope() {
    if (has_it_) turn_.give_back();
  }

 private:
  ReservingTurn& turn_;
  bool has_it_;
};

}  // namespace rondo::detail

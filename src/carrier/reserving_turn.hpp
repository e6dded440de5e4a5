// Lets one rank of a host at a time look how much memory is left, and reserve its own. Ranks that
// need memory in the same call would else each find room for their piece where there is none for
// all of them. Each communicator has a turn of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "fifo/fifo.hpp"

namespace rondo::detail {

// Lies in memory that the ranks share; zeroed memory is a turn that nobody has.
class ReservingTurn {
 public:
  // Waits until no other rank has the turn. Returns whether this rank has it now: it has not if
  // others keep the turn for as long as `patience`, since one of them was stopped or killed in the
  // middle, say. The caller then goes on without the turn.
  [[nodiscard]] bool take(std::chrono::nanoseconds patience);
  // A rank that has the turn calls this.
  void give_back();

 private:
  // 1 while a rank has the turn. take() stores 1 by a compare-exchange with acquire, which pairs
  // with give_back()'s release of 0.
  alignas(kCounterSpacing) std::uint32_t taken_ = 0;
};

// How long ranks wait for each other before each reserves so many bytes: a second, and ten
// nanoseconds for each byte, in which many ranks can fill that.
constexpr std::chrono::nanoseconds patience_for(std::size_t bytes) {
  return std::chrono::seconds(1) + std::chrono::nanoseconds(bytes) * 10;
}

class ReservingScope {
 public:
  ReservingScope(ReservingTurn& turn, std::size_t bytes)
      : turn_(turn), has_it_(turn.take(patience_for(bytes))) {}
  ReservingScope(const ReservingScope&) = delete;
  ReservingScope& operator=(const ReservingScope&) = delete;
  ~ReservingScope() {
    if (has_it_) turn_.give_back();
  }
  [[nodiscard]] bool has_it() const { return has_it_; }

 private:
  ReservingTurn& turn_;
  bool has_it_;
};

}  // namespace rondo::detail

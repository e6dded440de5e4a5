// How a wait paces itself: it spins, then yields its core, then sleeps until it is woken or a nap is over; and when a
// call is over that takes too long. Pure: rounds and times are told to it.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/deadline.hpp"

namespace rondo::detail {

// What a rank waits among.
struct Surroundings {
  bool has_pump = false;  // which each round drives
  bool crowded =
      false;  // there are more ranks than cores, so that spinning keeps the peer from its work
  // How long to sleep at a time while the network works on a long vector; 0: not at all.
  std::chrono::microseconds nap{};
};

// A wait is made of rounds, each of some looks at what is waited for; after a round it may rest.
class Pace {
 public:
  enum class Rest : std::uint8_t { none, yield, sleep };

  explicit Pace(const Surroundings& surroundings);

  // A call begins. `chunk_bytes`: of the vector, for each rank. In the background, a wait sleeps almost at once.
  void begin_call(std::uint64_t chunk_bytes, bool background);

  // Before the first round, without a pause between them.
  [[nodiscard]] int eager_looks() const { return spins_ ? kEagerLooks : 1; }
  // In a round, with a pause after each.
  [[nodiscard]] int looks_per_round() const { return spins_ ? kLooksPerRound : 1; }

  [[nodiscard]] Rest rest_after(std::uint64_t round) const {
    if (round < spin_rounds_) return Rest::none;
    if (round >= awake_rounds_) return Rest::sleep;
    const bool yields = !around_.has_pump || (round + 1) % kRoundsPerYieldWithPump == 0;
    return yields ? Rest::yield : Rest::none;
  }
  // Of a sleep after this round: the longest.
  [[nodiscard]] std::chrono::microseconds nap_after(std::uint64_t round) const;

  // Whether this round also reads the clock and looks for ranks that are gone, and whether it compares calls.
  [[nodiscard]] bool reads_clock(std::uint64_t round) const {
    return round >= awake_rounds_ || compares_calls(round);
  }
  [[nodiscard]] bool compares_calls(std::uint64_t round) const {
    return round >= spin_rounds_ && round % kRoundsPerClock == 0;
  }

 private:
  // Looks take less time than a line takes to come from another core.
  static constexpr int kEagerLooks = 64;
  static constexpr int kLooksPerRound = 32;
  // MPI yields by itself where it was told to.
  static constexpr std::uint64_t kRoundsPerYieldWithPump = 8;
  static constexpr std::uint64_t kRoundsPerClock = 64;

  Surroundings around_;
  bool spins_;
  std::uint64_t spin_rounds_ = 0;   // before it yields, in this call
  std::uint64_t awake_rounds_ = 0;  // before it sleeps, in this call
  bool naps_early_ = false;         // in this call
  bool background_ = false;         // likewise
};

// When a call has taken too long. The clock is first read when a wait turns out to be long.
class CallDeadline {
 public:
  void begin_call(std::chrono::milliseconds timeout) {
    timeout_ = timeout;
    runs_ = false;
  }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }

  struct Due {
    bool too_late = false;
    bool roll_call =
        false;  // time to look at all ranks of this host, and not only at the one waited for
  };
  Due due_at(Clock::time_point now);

 private:
  std::chrono::milliseconds timeout_{};
  bool runs_ = false;
  Clock::time_point deadline_;
  Clock::time_point roll_call_;
};

}  // namespace rondo::detail

// The pace of a wait: it spins, then yields its core, then sleeps until it is woken or a nap is
// over. Also the deadline of a call. This code reads no clock: its caller passes rounds and times.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/deadline.hpp"

namespace rondo::detail {

// How long to sleep at a time while the network works on a long vector, and from which chunk on; 0:
// not at all.
struct NapLengths {
  std::chrono::microseconds length{};
  std::uint64_t from_chunk_bytes = 0;
};

// The conditions under which a rank waits.
struct Surroundings {
  bool has_pump = false;  // each round drives the pump
  bool crowded =
      false;  // there are more ranks than cores, so that spinning keeps the peer from its work
  NapLengths naps;
  // A control group lets the ranks use fewer cores than they are: each yield takes from that, too.
  bool short_of_quota = false;
  bool drives_program = false;  // looks drive MPI for the program, and nobody rings for that
};

// A wait is a sequence of rounds. In each round it looks several times for what it waits for, and
// then it may rest.
//
// Where other threads want the core (engine/core_share.hpp), it does not yield. It spins for about
// as long as it takes to wake a sleeper, and then sleeps. While two ranks run at the same time,
// what one waits for comes within microseconds; while both are on one core, it never comes before
// the one sleeps. So a wait spins less after each that slept, down to not at all, and as long as
// ever after one that did not sleep; now and then it tries.
class Pace {
 public:
  enum class Rest : std::uint8_t { none, yield, sleep };

  explicit Pace(const Surroundings& surroundings);

  // A call begins. `chunk_bytes`: of the vector, for each rank. In the background, a wait sleeps
  // almost at once.
  void begin_call(std::uint64_t chunk_bytes, bool background);

  // A wait begins that the looks before the first round did not end. `core_is_wanted`: by others; a
  // wait that drives the pump pays no heed to that, since nobody rings for what comes by network.
  void begin_wait(bool core_is_wanted);
  // It has ended. `slept`: not while it spun.
  void end_wait(bool slept);

  // How many looks come before the first round, without a pause between them.
  [[nodiscard]] int eager_looks() const { return spins_ ? kEagerLooks : 1; }
  // How many looks a round has, with a pause after each.
  [[nodiscard]] int looks_per_round() const { return spins_ ? kLooksPerRound : 1; }

  [[nodiscard]] Rest rest_after(std::uint64_t round) const {
    if (round < spin_rounds_) return Rest::none;
    if (round >= awake_rounds_) return Rest::sleep;
    const bool yields = !around_.has_pump || (round + 1) % kRoundsPerYieldWithPump == 0;
    return yields ? Rest::yield : Rest::none;
  }
  // How long to sleep at most, in a wait that has slept so often before.
  [[nodiscard]] std::chrono::microseconds nap_after(std::uint64_t naps) const;

  // Whether this round also reads the clock and looks for ranks that are gone, and whether it
  // compares calls.
  [[nodiscard]] bool reads_clock(std::uint64_t round) const {
    return (round >= awake_rounds_ && round > 0) || compares_calls(round);
  }
  [[nodiscard]] bool compares_calls(std::uint64_t round) const {
    const bool naps_long = round >= awake_rounds_ && !naps_early_;
    return round > 0 && round >= spin_rounds_ &&
           round % (naps_long ? kLongNapsPerLook : kRoundsPerClock) == 0;
  }

 private:
  // Looks take less time than a cache line takes to come from another core.
  static constexpr int kEagerLooks = 64;
  static constexpr int kLooksPerRound = 32;
  // Of a wait on a core that others want.
  static constexpr std::uint64_t kMostSpinRoundsIfWanted = 32;
  static constexpr std::uint64_t kWaitsPerTry = 16;
  // With a pump a wait yields less often: MPI itself yields where it is configured to.
  static constexpr std::uint64_t kRoundsPerYieldWithPump = 8;
  static constexpr std::uint64_t kRoundsPerClock = 64;
  // Naps grow to a millisecond. Ranks of two hosts may wait in different calls, whose messages go
  // along different edges: then each learns of the other's call only when both compare calls. With
  // 64 naps between two looks that took 0.1 s.
  static constexpr std::uint64_t kLongNapsPerLook = 16;

  Surroundings around_;
  bool spins_;
  bool naps_early_ = false;             // in this call
  bool background_ = false;             // in this call
  std::uint64_t call_spin_rounds_ = 0;  // in this call, where nobody else wants the core
  std::uint64_t call_awake_rounds_ = 0;
  bool core_is_wanted_ = false;     // in this wait
  std::uint64_t spin_rounds_ = 0;   // before it yields, in this wait
  std::uint64_t awake_rounds_ = 0;  // before it sleeps, in this wait
  std::uint64_t spin_rounds_if_wanted_ = kMostSpinRoundsIfWanted;
  std::uint64_t waits_if_wanted_ = 0;
};

// The deadline of a call. It starts when a wait of the call first reads the clock; short waits
// never read it.
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

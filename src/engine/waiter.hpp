// How a rank waits for another: spin, then yield, then sleep; drive the pump; and give up when the
// communicator has ended, the peer's process is gone, or the call's deadline has passed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "carrier/abort_board.hpp"
#include "carrier/peer_watch.hpp"
#include "carrier/pump.hpp"

namespace rondo::detail {

enum class WaitResult : std::uint8_t { ready, aborted, peer_ended, timed_out };

class Waiter {
 public:
  // `crowded`: there are more ranks than cores, so that spinning keeps the peer from its work.
  Waiter(AbortBoard& board, const PeerWatch& peers, Pump* pump, bool crowded);

  // A call begins; from now on its waits end as timed_out once `timeout` has passed. The clock is
  // first read when a wait turns out to be long.
  void begin_call(std::chrono::milliseconds timeout);

  // Until `ready()` is true, which is then the last thing called.
  template <class Ready>
  WaitResult wait(int peer, Ready ready) {
    if (ready()) return WaitResult::ready;
    for (std::uint64_t round = 0;; ++round) {
      for (int spin = 0; spin < spins_per_round_; ++spin) {
        if (ready()) return WaitResult::ready;
        relax();
      }
      if (const auto result = between_spins(round, peer)) {
        return ready() ? WaitResult::ready : *result;
      }
    }
  }

 private:
  static void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  // Nothing, as long as waiting goes on.
  std::optional<WaitResult> between_spins(std::uint64_t round, int peer);
  bool past_deadline();

  AbortBoard& board_;
  const PeerWatch& peers_;
  Pump* pump_;
  int spins_per_round_;
  std::uint64_t spin_rounds_;
  std::chrono::milliseconds timeout_{};
  bool clock_runs_ = false;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace rondo::detail

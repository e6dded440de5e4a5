// How a rank waits for another: spin, then yield, then sleep until it is woken; drive the pump; and give
// up when the communicator has ended, a rank of this host without which the call cannot end is gone, a rank is
// in another call, or the call's deadline has passed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/deadline.hpp"
#include "carrier/host_segment.hpp"
#include "carrier/peer_watch.hpp"
#include "carrier/pump.hpp"
#include "engine/stop.hpp"

namespace rondo::detail {

// Whom a rank waits among.
struct Company {
  HostSegment* segment = nullptr;
  int rank = 0;
  const std::vector<int>* ranks_sharing = nullptr;  // the segment, this rank among them
  const PeerWatch* peers = nullptr;
  Pump* pump = nullptr;
  const std::vector<int>* ring = nullptr;  // rank by position
  std::vector<RecvEnd>* from = nullptr;    // by position
  // There are more ranks than cores, so that spinning keeps the peer from its work.
  bool crowded = false;
  // How long to sleep at a time while the network works on a long vector; 0: not at all.
  std::chrono::microseconds nap{};
};

// A rank that shares the segment and without which call number `sequence` cannot end: it has destroyed its communicator
// before that call, or its process has ended in it. A process that ended the call before is missed by nobody.
std::optional<Stop> find_missing_rank(HostSegment& segment, const std::vector<int>& ranks_sharing,
                                      const PeerWatch& peers, std::uint64_t sequence);

class Waiter {
 public:
  explicit Waiter(const Company& company);

  // A call begins; from now on its waits end as timed_out once `timeout` has passed. The clock is
  // first read when a wait turns out to be long. In the background, a wait sleeps almost at once.
  void begin_call(const Signature& signature, std::chrono::milliseconds timeout, bool background);

  // Until `ready()` is true, which is then the last thing called.
  template <class Ready>
  WaitResult wait(int peer, Ready ready) {
    for (int look = 0; look < eager_looks_; ++look) {
      if (ready()) return WaitResult::ready;
    }
    for (std::uint64_t round = 0;; ++round) {
      for (int spin = 0; spin < spins_per_round_; ++spin) {
        if (ready()) return WaitResult::ready;
        relax();
      }
      if (const auto result = look_around(round, peer)) {
        return ready() ? WaitResult::ready : *result;
      }
      if (round < spin_rounds_) continue;
      if (round < awake_rounds_) {
        yield(round);
      } else {
        company_.segment->bell(company_.rank).sleep(ready, nap(round));
      }
    }
  }

  // Of the call that begin_call() was told of.
  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }

  // After a wait for `peer` that gave up.
  [[nodiscard]] Stop why(WaitResult result, int peer) const {
    const bool about_another = result != WaitResult::aborted && result != WaitResult::timed_out;
    return about_another ? found_ : Stop{result, peer};
  }

 private:
  static void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  void yield(std::uint64_t round) const;
  // Nothing, as long as waiting goes on.
  std::optional<WaitResult> look_around(std::uint64_t round, int peer);
  [[nodiscard]] std::chrono::microseconds nap(std::uint64_t round) const;
  void start_clock(Clock::time_point now);
  // Why the call cannot end, for `peer`'s sake, or, where `everyone`, for that of any rank of this host.
  std::optional<WaitResult> find_missing(int peer, bool everyone);
  WaitResult found(WaitResult result, int rank);
  [[nodiscard]] WaitResult unless_aborted(WaitResult found) const;
  bool someone_is_in_another_call(int peer, bool at_rest);
  bool is_another_call(int rank, const Signature& call);
  [[nodiscard]] bool shares_memory(int rank) const;

  Company company_;
  AbortBoard& board_;
  int eager_looks_;
  int spins_per_round_;
  std::uint64_t spin_rounds_ = 0;   // before it yields, in this call
  std::uint64_t awake_rounds_ = 0;  // before it sleeps, in this call
  bool naps_early_ = false;         // in this call
  bool background_ = false;         // likewise
  Signature signature_;
  Stop found_;  // why a wait gave up, where that is about a certain rank
  std::chrono::milliseconds timeout_{};
  bool clock_runs_ = false;
  Clock::time_point deadline_;
  Clock::time_point roll_call_;  // when to look at all ranks of this host
};

}  // namespace rondo::detail

// How a rank waits for another: at the pace that engine/pace.hpp sets, driving the pump, until what
// it waits for has come, a cause in engine/wait_ends.hpp ends the wait, or the call's deadline has
// passed.
#pragma once

#include <cassert>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "engine/core_share.hpp"
#include "engine/failure.hpp"
#include "engine/pace.hpp"
#include "engine/wait_ends.hpp"
#include "engine/wiring.hpp"

namespace rondo::detail {

class Waiter {
 public:
  explicit Waiter(Wiring& wiring);

  // A call begins; from now on its waits end as timed_out once `timeout` has passed. In the
  // background, a wait sleeps almost at once.
  void begin_call(const Signature& signature, std::chrono::milliseconds timeout, bool background);

  // The same for a message, for which only the rank at the other end is waited for.
  void begin_message(const Signature& signature, std::chrono::milliseconds timeout,
                     bool background);

  // What waits do as long as this exists, again and again: `work` returns whether it has done
  // anything, and a wait rests only if it has not. `work` must neither wait nor throw.
  class Meanwhile {
   public:
    Meanwhile(Waiter& waiter, std::function<bool()> work) : waiter_(waiter) {
      assert(!waiter_.meanwhile_);
      waiter_.meanwhile_ = std::move(work);
    }
    Meanwhile(const Meanwhile&) = delete;
    Meanwhile& operator=(const Meanwhile&) = delete;
    ~Meanwhile() { waiter_.meanwhile_ = nullptr; }

   private:
    Waiter& waiter_;
  };

  // Waits until `ready()` is true, and calls nothing after that. Throws Failure; and
  // TransportError, if the pump that it drives does.
  template <class Ready>
  void wait(int peer, Ready ready) {
    for (int look = 0; look < eager_looks_; ++look) {
      if (ready()) return;
    }
    waits_since_.reset();
    Bell::Naps naps(bell_);
    bool slept = false;
    begin_rounds();
    for (std::uint64_t round = 0;; ++round) {
      for (int look = 0; look < looks_per_round_; ++look) {
        if (ready()) return pace_.end_wait(slept);
        relax();
      }
      if (const auto failure = look_around(round, peer)) {
        if (ready()) return;
        throw Failure(*failure);
      }
      if (works_meanwhile()) {
        round = 0;  // it has not waited in vain
        waits_since_.reset();
        yield_ended_.reset();
        naps.end();
        continue;
      }
      const Pace::Rest rest = pace_.rest_after(round);
      if (rest == Pace::Rest::yield) yield();
      if (rest == Pace::Rest::sleep) {
        slept = true;
        yield_ended_.reset();
        nap(naps, ready);
      }
    }
  }

  // A rank that works long without a wait calls this.
  void poll() {
    if (pump_ != nullptr) pump_->progress();
  }

  // The timeout that the last begin_call() was given.
  [[nodiscard]] std::chrono::milliseconds timeout() const { return deadline_.timeout(); }

 private:
  static void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  bool works_meanwhile() { return meanwhile_ && meanwhile_(); }
  void begin_rounds() {
    has_yielded_ = false;
    yield_ended_.reset();
    const bool wanted = learns_of_core_ && core_of_this_thread().is_wanted();
    if (short_of_quota_ || wanted) begin_rounds_on_wanted_core();
  }
  void begin_rounds_on_wanted_core();
  // Those that make work possible ring the bell too.
  template <class Ready>
  void nap(Bell::Naps& naps, Ready& ready) {
    bool worked = false;
    const auto over = [&] {
      if (ready()) return true;
      worked = works_meanwhile();
      return worked;
    };
    naps.take(over, pace_.nap_after(naps.taken()));
    if (worked) naps.end();
  }
  void yield();
  // Whether the core is wanted by others, after a yield that took so long.
  bool judge_yield(CoreShare& core, Clock::duration took, Clock::time_point now) const;
  // Returns nothing while the wait has to go on.
  std::optional<Failure> look_around(std::uint64_t round, int peer);
  [[nodiscard]] Failure first_cause(const Failure& found) const;

  Pump* pump_;
  // Null where nothing is to be driven, or the pump does it.
  const std::function<void()>* drive_program_;
  AbortBoard& board_;
  Bell& bell_;
  std::size_t ranks_;
  Pace pace_;
  bool short_of_quota_;
  // Whether it learns from what its yields take. One that drives the pump does not, since it must
  // not sleep for what comes by network.
  bool learns_of_core_;
  bool shares_core_;  // with other ranks of this host
  int eager_looks_;
  int looks_per_round_;
  CallDeadline deadline_;
  WaitEnds ends_;
  std::function<bool()> meanwhile_;
  std::optional<Clock::time_point> waits_since_;  // the first look at the clock of this wait
  bool has_yielded_ = false;                      // this wait
  // The last one of this wait; nothing if the wait has done more than look since then.
  std::optional<Clock::time_point> yield_ended_;
};

}  // namespace rondo::detail

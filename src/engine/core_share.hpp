// What a thread learns in its waits of the core that it waits on: whether other threads want that
// core, too. Where they do, whoever yields it loses a time slice, some milliseconds, in which what
// the thread waits for may come; a thread that sleeps runs again soon after it is woken.
//
// A yield that took long has lost a slice: the core is wanted then for some time. After that the
// thread tries again whether it is free, which may cost another slice; so it tries less often each
// time that it was not. Example: in a wait beside a busy loop, a yield takes 3 ms at time 0. Waits
// sleep until 100 ms; the next wait yields, and loses a slice again. Waits sleep for 200 ms, then
// for 400, up to a second.
//
// Where ranks share cores, a yield may take long since another rank works. There the core counts as
// wanted only if most of the time of all yields goes in long ones.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/deadline.hpp"

namespace rondo::detail {

// This code reads no clock: its caller passes times, and how often this thread was interrupted: has
// lost its core although it could have run on (getrusage's ru_nivcsw).
class CoreShare {
 public:
  // A yield that takes so long has lost a slice, if the thread was interrupted meanwhile. Else the
  // host of a virtual machine took the core, or the system worked on it: sleeping does not help.
  static constexpr std::chrono::microseconds kLongYield{200};

  // As of the last call of the functions below.
  [[nodiscard]] bool is_wanted() const { return wanted_; }

  // A wait is about to yield for the first time.
  void begin_yields(std::int64_t interruptions) { before_yields_ = interruptions; }
  // Since then, a yield has taken longer than kLongYield.
  void note_long_yield(Clock::time_point now, std::int64_t interruptions);

  // Where ranks share cores, a long yield may be the turn of another rank, for which this one
  // waits. There a thread notes what each yield takes. Returns whether most of the time of late
  // went in long ones: then it calls lose_slices().
  bool note_shared_yield(Clock::duration took);
  // Other threads want the core, for some time.
  void lose_slices(Clock::time_point now, std::int64_t interruptions);

  // Whether try_again() would do anything.
  [[nodiscard]] bool is_due(Clock::time_point now) const { return wanted_ && now >= until_; }
  // A wait begins on a core that was wanted. A program that computes between its calls is
  // interrupted there as long as others want its core: then there is no need to try.
  void try_again(Clock::time_point now, std::int64_t interruptions);
  // The same where ranks share cores: they interrupt each other, which says nothing.
  void assume_free() { wanted_ = false; }

 private:
  bool wanted_ = false;
  Clock::time_point until_;
  std::chrono::milliseconds period_{};
  Clock::duration yield_time_{};       // of late, where ranks share cores
  Clock::duration long_yield_time_{};  // in yields that took longer than kLongYield
  std::int64_t before_yields_ = 0;
  std::int64_t counted_ = 0;  // interruptions
  Clock::time_point counted_at_;
};

CoreShare& core_of_this_thread();
// How often the calling thread was interrupted.
std::int64_t times_interrupted();

}  // namespace rondo::detail

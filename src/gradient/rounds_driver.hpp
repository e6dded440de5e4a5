// Drives the rounds of a reducer's iterations: on the reducer's thread, or on that of finish()
// where there is no overlap.
#pragma once

#include "gradient/reducer_state.hpp"
#include "gradient/rounds.hpp"

namespace rondo::detail {

class RoundsDriver {
 public:
  // Borrows the state.
  explicit RoundsDriver(ReducerState& state);
  RoundsDriver(const RoundsDriver&) = delete;
  RoundsDriver& operator=(const RoundsDriver&) = delete;

  // Runs iterations as they begin, until the state says stop.
  void serve();
  // Drives an iteration from its opening to its closing. What it throws, the state has as
  // `failure`.
  void run_iteration();

  // To be looked at by other threads only while no iteration runs.
  [[nodiscard]] const Rounds& rounds() const { return rounds_; }

 private:
  // The caller does not hold the lock.
  void communicate();
  void open();
  [[nodiscard]] Clock::time_point wait_for(std::size_t bucket);
  void take(std::size_t bucket, Clock::time_point filled);
  void call_or_hook(std::size_t bucket, Call call);
  void close();
  void follow_arrival();

  ReducerState& state_;
  Rounds rounds_;
};

// Ends the communicator: otherwise the other ranks would wait for this one. If it has ended
// already, its first reason is kept.
void abort_for(Communicator& communicator, const char* reason);

}  // namespace rondo::detail

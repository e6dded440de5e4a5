// Steps of a trainer, measured in three modes by turns: without communication, with all of it after backprop, and
// with it during backprop.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <rondo/communicator.hpp>
#include <rondo/gradient_reducer.hpp>
#include <vector>

#include "tools/overlap/figures.hpp"

namespace rondo::overlap {

// Two reducers of the same gradients, with the same buckets, and the times of the last step. What a trainer calls in
// place of a reducer.
class ThreeModes {
 public:
  using Clock = std::chrono::steady_clock;

  // All that it is given must outlive it; gradients of the parameters are the caller's. Collective.
  ThreeModes(Communicator& comm, const std::vector<Parameter>& parameters,
             const GradientOptions& options);

  void use(Mode mode) { mode_ = mode; }
  // Backprop begins; a gradient is complete; backprop has ended, and communication is to end.
  void begin() { begin_ = first_mark_ = Clock::now(); }
  void ready(std::size_t parameter);
  void finish();

  [[nodiscard]] Mode mode() const { return mode_; }
  [[nodiscard]] const GradientReducer& during() const { return during_; }
  // Of the last step, from its begin().
  [[nodiscard]] double first_mark_us() const { return us(begin_, first_mark_); }
  [[nodiscard]] double backward_us() const { return us(begin_, end_); }
  [[nodiscard]] double exchanged_us() const { return us(begin_, exchanged_); }

 private:
  static double us(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::micro>(to - from).count();
  }

  GradientReducer during_;
  GradientReducer after_;
  Mode mode_ = Mode::alone;
  Clock::time_point begin_;
  Clock::time_point first_mark_;
  Clock::time_point end_;
  Clock::time_point exchanged_;
};

// In microseconds, of the slowest rank.
struct Measured {
  struct OfMode {
    Spread step;
    Spread backward;
    Spread exchanged;  // backprop and communication
  };
  std::array<OfMode, kModes> modes;
  Figures figures;
  double most_hidden = 0;  // of a backprop as long as the one alone
  std::size_t buckets = 0;
  std::size_t bucket_bytes = 0;

  [[nodiscard]] const OfMode& of(Mode mode) const { return modes[static_cast<std::size_t>(mode)]; }
};

// Takes `warm_ups` steps, then `steps` that count, in each mode by turns. `step(number)` takes one, in which it calls
// begin(), ready() and finish() of `modes`. Collective.
Measured measure(Communicator& comm, ThreeModes& modes, int warm_ups, int steps,
                 const std::function<void(int number)>& step);

}  // namespace rondo::overlap

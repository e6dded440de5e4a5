// Steps of a trainer, measured in three modes by turns: without communication, with all of it after
// backprop, and with it during backprop.
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

// Two reducers of the same gradients, with the same buckets, and the times of the last step. A
// trainer calls this in place of a reducer.
class ThreeModes {
 public:
  using Clock = std::chrono::steady_clock;

  // The communicator and the parameters' memory must outlive the object. Collective.
  ThreeModes(Communicator& comm, const std::vector<Parameter>& parameters,
             const GradientOptions& options);

  void use(Mode mode) { mode_ = mode; }
  // To be called when backprop begins, when a gradient is complete, and when backprop has ended.
  // finish() waits for the communication.
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
  double most_hidden = 0;  // for a backprop that communication does not slow down
  std::size_t buckets = 0;
  std::size_t bucket_bytes = 0;

  [[nodiscard]] const OfMode& of(Mode mode) const { return modes[static_cast<std::size_t>(mode)]; }
};

// Runs `warm_ups` unmeasured steps, then `steps` measured ones, in each mode by turns.
// `step(number)` runs one step and calls begin(), ready() and finish() of `modes` in it.
// Collective.
Measured measure(Communicator& comm, ThreeModes& modes, int warm_ups, int steps,
                 const std::function<void(int number)>& step);

}  // namespace rondo::overlap

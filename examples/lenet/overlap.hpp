// How much of the trainer's communication is hidden behind its backprop.
#pragma once

#include <chrono>
#include <memory>
#include <rondo/communicator.hpp>
#include <rondo/gradient_reducer.hpp>

#include "bench/overlap/figures.hpp"
#include "exchange.hpp"
#include "learner.hpp"

namespace lenet {

// One learner's exchange in three modes, of which one is on.
class ThreeModes {
 public:
  using Clock = std::chrono::steady_clock;

  ThreeModes(rondo::Communicator& comm, ParameterBlock& gradients,
             const rondo::GradientOptions& options);

  // Borrows this.
  Exchange exchange();

  void use(rondo::overlap::Mode mode) { mode_ = mode; }
  [[nodiscard]] const rondo::GradientReducer& during() const { return during_; }
  // Of the last step.
  [[nodiscard]] double backward_us() const { return us(begin_, end_); }
  [[nodiscard]] double exchanged_us() const { return us(begin_, exchanged_); }
  [[nodiscard]] double first_mark_us() const { return us(begin_, first_mark_); }

 private:
  static double us(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::micro>(to - from).count();
  }

  rondo::GradientReducer after_;
  rondo::GradientReducer during_;
  rondo::overlap::Mode mode_ = rondo::overlap::Mode::alone;
  Clock::time_point begin_;
  Clock::time_point first_mark_;
  Clock::time_point end_;
  Clock::time_point exchanged_;
};

// Takes `steps` steps in each mode, in turn, and prints what they took on rank 0. Collective. Parameters stay as
// they are if the learning rate is 0.
void measure_overlap(rondo::Communicator& comm, Learner& learner, ThreeModes& modes, int steps,
                     std::size_t minibatches);

}  // namespace lenet

// How much of the trainer's communication is hidden behind its backprop.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <rondo/communicator.hpp>
#include <rondo/gradient_reducer.hpp>
#include <string>

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

  void use(rondo::overlap::Mode mode) { mode_ = mode; }
  void begin() { begin_ = first_mark_ = Clock::now(); }
  void ready(std::size_t parameter);
  void finish();
  [[nodiscard]] const rondo::GradientReducer& during() const { return during_; }
  // Of the last step.
  [[nodiscard]] double backward_us() const { return us(begin_, end_); }
  [[nodiscard]] double exchanged_us() const { return us(begin_, exchanged_); }
  [[nodiscard]] double first_mark_us() const { return us(begin_, first_mark_); }

 private:
  static double us(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::micro>(to - from).count();
  }

  rondo::GradientReducer during_;
  rondo::GradientReducer after_;  // with the same buckets
  rondo::overlap::Mode mode_ = rondo::overlap::Mode::alone;
  Clock::time_point begin_;
  Clock::time_point first_mark_;
  Clock::time_point end_;
  Clock::time_point exchanged_;
};

Exchange exchange_in(const std::shared_ptr<ThreeModes>& modes);

// In microseconds, of the slowest rank.
struct OverlapReport {
  struct OfMode {
    rondo::overlap::Spread step;
    rondo::overlap::Spread backward;
    rondo::overlap::Spread exchanged;  // backprop and exchange
  };
  std::array<OfMode, rondo::overlap::kModes> modes;
  rondo::overlap::Figures figures;
  double most_hidden = 0;
  std::size_t buckets = 0;
  std::size_t bucket_bytes = 0;
  std::string progress_place;

  [[nodiscard]] const OfMode& of(rondo::overlap::Mode mode) const {
    return modes[static_cast<std::size_t>(mode)];
  }
};

// Takes `steps` steps in each mode, in turn. Collective. Parameters stay as they are if the learning rate is 0.
OverlapReport measure_overlap(rondo::Communicator& comm, Learner& learner, ThreeModes& modes,
                              int steps, std::size_t minibatches);

void print(const OverlapReport& report);

}  // namespace lenet

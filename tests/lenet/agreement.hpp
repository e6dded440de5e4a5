// The losses of a short training run, step by step, as the CPU computes them: what a GPU must agree
// with, to rounding.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "examples/layers/batches.hpp"
#include "examples/layers/learner.hpp"
#include "examples/lenet/lenet_shapes.hpp"
#include "examples/lenet/trainer.hpp"
#include "tests/layers/bright_bars.hpp"

namespace lenet {

inline const TrainingOptions kAgreementOptions{.learner = {.batch_size = 48, .rate = 0.3F},
                                               .seed = 9};

inline const Dataset& agreement_data() {
  static const Dataset kData{bright_bars(230, 1), bright_bars(101, 2)};
  return kData;
}

// Larger than at the start of a real run, so that the losses move from the first step on.
inline ParameterBlock agreement_parameters() {
  ParameterBlock parameters(lenet_shapes());
  initialise(parameters, kAgreementOptions.seed);
  for (float& value : parameters.all()) value *= 8;
  return parameters;
}

// The loss of each of the first 15 steps, of which every fifth is a minibatch of 38; and the number
// of test samples that are classified correctly at the end. `learner` is the only rank.
struct Trace {
  std::vector<double> losses;
  std::int64_t correct = 0;
};

inline Trace trace_of(Learner& learner, const ParameterBlock& parameters = agreement_parameters()) {
  learner.set_parameters(parameters);
  Trace trace;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    const auto order = shuffled(agreement_data().train.count(), kAgreementOptions.seed, epoch);
    learner.begin_epoch(order);
    double before = 0;
    for (std::size_t step = 0; step < 5; ++step) {
      learner.step(step);
      const double sum = learner.totals().loss;
      trace.losses.push_back((sum - before) / (step < 4 ? 48 : 38));
      before = sum;
    }
  }
  std::vector<std::uint32_t> all(agreement_data().test.count());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint32_t>(i);
  trace.correct = learner.correct(all);
  return trace;
}

// Recorded from the CPU's run.
inline constexpr std::array<double, 15> kLosses = {
    2.3104443, 2.2970639, 2.2711342, 2.2379281, 2.1898229, 2.1388522, 2.0082825, 1.7505946,
    1.7266377, 1.3729608, 0.6987113, 0.5986703, 0.5994564, 0.5017242, 0.4154404};

// How far rounding moves these losses: the largest difference up to each step between eight runs
// whose initial parameters were moved by up to 8 units in the last place. Where rounding decides
// whether ReLU cuts off a unit, the loss jumps, and at this rate jumps grow. So another order of
// additions (another version of oneDNN, a GPU) may differ as much.
inline constexpr std::array<double, 15> kRounding = {1e-7,   2e-7,   1e-6,   1e-5,   1.1e-4,
                                                     3e-4,   5e-4,   5e-4,   4e-3,   1.3e-2,
                                                     1.3e-2, 1.3e-2, 1.3e-2, 2.4e-2, 2.8e-2};

// Another exp or log, and another order of a batch's sum, move the first losses, too. oneDNN's
// log-softmax is off by some units of f32 (2.4e-7) in the same direction for all of a batch: with
// an exact one, the first losses are 1.8e-6 and 2.3e-6 larger.
inline constexpr double kLeast = 4e-6;

inline void expect_agreement(const Trace& trace) {
  constexpr double kRoom = 4;
  ASSERT_EQ(trace.losses.size(), kLosses.size());
  for (std::size_t i = 0; i < kLosses.size(); ++i) {
    EXPECT_NEAR(trace.losses[i], kLosses[i], std::max(kLeast, kRoom * kRounding[i]))
        << "step " << i;
  }
  constexpr std::int64_t kCorrect = 76;  // of 101, in all of those runs
  EXPECT_NEAR(static_cast<double>(trace.correct), kCorrect, 2);
}

}  // namespace lenet

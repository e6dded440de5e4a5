// The recorded losses are those of the CPU.

#include "tests/lenet/agreement.hpp"
#include "examples/lenet/task.hpp"

#include <cmath>
#include <random>

namespace lenet {
namespace {

Trace trace_from(const ParameterBlock& parameters) {
  const auto learner = make_cpu_learner(lenet_task(), agreement_data(), kAgreementOptions.learner,
                                        {0, 1}, [](ParameterBlock&) { return Exchange(); });
  return trace_of(*learner, parameters);
}

TEST(Agreement, TheCpusLossesAreThoseRecorded) {
  expect_agreement(trace_from(agreement_parameters()));
}

// Parameters moved by a few units in the last place stand for another order of additions.
TEST(Agreement, RoundingMovesThemNoFurther) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> units(-8, 8);
  for (int run = 0; run < 4; ++run) {
    ParameterBlock parameters = agreement_parameters();
    for (float& value : parameters.all()) {
      value = static_cast<float>(value * (1 + units(random) * 0x1p-24));
    }
    expect_agreement(trace_from(parameters));
  }
}

// A difference that is not rounding shows in the first steps.
TEST(Agreement, AnotherRateIsFound) {
  LearnerOptions other = kAgreementOptions.learner;
  other.rate *= 1.01F;
  const auto learner = make_cpu_learner(lenet_task(), agreement_data(), other, {0, 1},
                                        [](ParameterBlock&) { return Exchange(); });
  const Trace trace = trace_of(*learner);
  EXPECT_GT(std::abs(trace.losses[3] - kLosses[3]), 4 * kRounding[3]);
}

}  // namespace
}  // namespace lenet

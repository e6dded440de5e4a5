// The recorded losses are those of the CPU.

#include "tests/lenet/agreement.hpp"

namespace lenet {
namespace {

TEST(Agreement, TheCpusLossesAreThoseRecorded) {
  const auto learner = make_cpu_learner(agreement_data(), kAgreementOptions, {0, 1},
                                        [](ParameterBlock&) { return Exchange(); });
  const Trace trace = trace_of(*learner);
  expect_agreement(trace, 1e-5);
  EXPECT_EQ(trace.correct, 76);
}

}  // namespace
}  // namespace lenet

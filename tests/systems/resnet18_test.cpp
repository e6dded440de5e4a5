// ResNet-18 with batch normalisation over the samples of all ranks.

#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "examples/lenet/summing.hpp"
#include "examples/lenet/trainer.hpp"
#include "examples/systems/tasks.hpp"
#include "tests/layers/bright_bars.hpp"
#include "tests/support/ranks.hpp"

namespace lenet::systems {
namespace {

// Of minibatches of 5 samples and of 1, so that one rank has no sample in the second.
std::vector<float> trained(int ranks, bool over_all) {
  std::vector<float> parameters;
  const Dataset data{bright_bars(6, 1), bright_bars(2, 2)};
  rondo::test::run_ranks(ranks, {}, [&](rondo::Communicator& comm) {
    rondo::Communicator norms = comm.duplicate();
    TrainingOptions options{.learner = {.batch_size = 5, .rate = 0.01F}, .seed = 3};
    if (over_all)
      options.learner.sum_norms = [&](std::span<double> sums) { norms.all_reduce(sums); };
    const auto learner =
        make_cpu_learner(resnet18_task(), data, options.learner, {comm.rank(), comm.size()},
                         [&](ParameterBlock& gradients) {
                           rondo::GradientOptions reducing;
                           reducing.average = rondo::Average::sum;
                           return exchange_by(std::make_shared<rondo::GradientReducer>(
                               comm, reducible(gradients), reducing));
                         });
    Updates updates(comm, *learner);
    Trainer trainer(comm, data, options, *learner, updates);
    trainer.run_epoch(1, [](auto, auto) {});
    trainer.agreed_hash();
    if (comm.rank() != 0) return;
    const ParameterBlock last = learner->parameters();
    parameters.assign(last.all().begin(), last.all().end());
  });
  return parameters;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i] - b[i]), 2);
  return std::sqrt(sum);
}

TEST(BatchNorm, ResNetOverAllRanksTrainsAsOneRank) {
  const std::vector<float> one = trained(1, false);
  const double of_all = distance(trained(2, true), one);
  const double of_each = distance(trained(2, false), one);
  EXPECT_GT(of_each, 0);
  EXPECT_LT(of_all, of_each / 20);
}

}  // namespace
}  // namespace lenet::systems

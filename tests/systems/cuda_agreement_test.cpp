// A GPU's losses agree with the CPU's, step by step; and several ranks on GPUs do the arithmetic of
// one. Also run on a stand-in for CUDA and its libraries.

#include <cmath>
#include <mutex>
#include <numeric>
#include <rondo/cuda.hpp>
#include <thread>

#include "examples/lenet/task.hpp"
#include "examples/lenet/trainer.hpp"
#include "examples/systems/tasks.hpp"
#include "tests/lenet/agreement.hpp"

namespace lenet::systems {
namespace {

rondo::GradientOptions by_ring(bool overlap, std::size_t bucket_kib = 32) {
  rondo::GradientOptions options;
  options.average = rondo::Average::sum;
  options.algorithm = rondo::Algorithm::ring;
  options.bucket_bytes = bucket_kib << 10U;
  options.overlap = overlap;
  return options;
}

class CudaAgreement : public ::testing::Test {
 protected:
  void SetUp() override {
    if (rondo::cuda::device_count() == 0) {
      GTEST_SKIP() << "no CUDA device: " << rondo::cuda::why_no_device();
    }
  }
};

TEST_F(CudaAgreement, TheLossesOfEveryStepAreTheCpus) {
  std::vector<rondo::cuda::Communicator> group = rondo::cuda::local_group({0});
  const auto learner = make_cuda_learner(lenet_task(), agreement_data(), kAgreementOptions.learner,
                                         group[0], by_ring(true));
  expect_agreement(trace_of(*learner));
}

// Each rank a thread, all on one device.
TEST_F(CudaAgreement, TwoAndThreeRanksDoTheArithmeticOfOne) {
  std::vector<double> losses;
  for (const int ranks : {1, 2, 3}) {
    std::vector<rondo::cuda::Communicator> group =
        rondo::cuda::local_group(std::vector<int>(static_cast<std::size_t>(ranks), 0));
    std::vector<std::thread> threads;
    std::mutex mutex;
    for (rondo::cuda::Communicator& devices : group) {
      threads.emplace_back([&] {
        const auto learner =
            make_cuda_learner(lenet_task(), agreement_data(), kAgreementOptions.learner, devices,
                              by_ring(ranks != 2));
        Updates updates(devices.host(), *learner);
        Trainer trainer(devices.host(), agreement_data(), kAgreementOptions, *learner, updates);
        EpochResult result;
        for (int epoch = 1; epoch <= 2; ++epoch) {
          result = trainer.run_epoch(epoch, [](std::size_t, std::size_t) {});
        }
        trainer.agreed_hash();  // throws where ranks differ
        const std::lock_guard lock(mutex);
        if (devices.rank() == 0) losses.push_back(result.train_loss);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  ASSERT_EQ(losses.size(), 3U);
  constexpr double kMost = 4 * kRounding[9];  // the second epoch ends with the tenth step
  EXPECT_NEAR(losses[1], losses[0], kMost);
  EXPECT_NEAR(losses[2], losses[0], kMost);
}

// ResNet-18, for a few steps: the last minibatch has one sample.
const Dataset& small_data() {
  static const Dataset kData{bright_bars(3, 3), bright_bars(3, 4)};
  return kData;
}
constexpr std::size_t kSteps = 2;

struct Trained {
  std::vector<double> losses;  // of the samples so far, after each step
  std::vector<float> after_one_step;
  std::vector<float> parameters;
  std::vector<float> statistics;
  std::int64_t correct = 0;
};

ParameterBlock start_of_resnet18() {
  ParameterBlock parameters(resnet18_task().shapes);
  initialise(parameters, 5);
  for (float& value : parameters.all()) value *= 4;
  return parameters;
}

std::vector<float> parameters_of(Learner& learner) {
  const ParameterBlock parameters = learner.parameters();
  return {parameters.all().begin(), parameters.all().end()};
}

Trained train(Learner& learner) {
  learner.set_parameters(start_of_resnet18());
  Trained trained;
  learner.begin_epoch(shuffled(small_data().train.count(), 1, 1));
  for (std::size_t step = 0; step < kSteps; ++step) {
    learner.step(step);
    trained.losses.push_back(learner.totals().loss);
    if (step == 0) trained.after_one_step = parameters_of(learner);
  }
  trained.parameters = parameters_of(learner);
  trained.statistics = learner.statistics();
  const std::vector<std::uint32_t> all{0, 1, 2};
  trained.correct = learner.correct(all);
  return trained;
}

double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
  }
  return std::sqrt(sum);
}

// The differences are relative to how far the CPU's values have moved. A ReLU whose input is 0 to
// rounding passes a slope in one and not in the other, and the next steps differ by more.
void expect_same(const Trained& gpu, const Trained& cpu) {
  for (std::size_t step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(gpu.losses[step], cpu.losses[step], (step == 0 ? 1e-5 : 5e-3) * cpu.losses[step])
        << step;
  }
  const ParameterBlock start = start_of_resnet18();
  EXPECT_LT(distance(gpu.after_one_step, cpu.after_one_step),
            0.02 * distance(cpu.after_one_step, start.all()));
  EXPECT_LT(distance(gpu.parameters, cpu.parameters), 0.3 * distance(cpu.parameters, start.all()));
  ASSERT_EQ(gpu.statistics.size(), cpu.statistics.size());
  const std::vector<float> zeros(cpu.statistics.size());
  EXPECT_LT(distance(gpu.statistics, cpu.statistics), 0.01 * distance(cpu.statistics, zeros));
  EXPECT_NEAR(static_cast<double>(gpu.correct), static_cast<double>(cpu.correct), 1);
}

LearnerOptions few_steps() {
  LearnerOptions options;
  options.batch_size = 2;
  options.rate = 0.002F;
  return options;
}

Trained on_cpu(const LearnerOptions& options) {
  const auto learner = make_cpu_learner(resnet18_task(), small_data(), options, {},
                                        [](ParameterBlock&) { return Exchange(); });
  return train(*learner);
}

// Samples of another size, and other classes, than images have.
std::vector<float> spirals_trained_by(Learner& learner, const Dataset& data) {
  ParameterBlock parameters(spirals_task().shapes);
  initialise(parameters, 1);
  learner.set_parameters(parameters);
  learner.begin_epoch(shuffled(data.train.count(), 1, 1));
  for (std::size_t step = 0; step < 12; ++step) learner.step(step);
  std::vector<float> trained = parameters_of(learner);
  trained.push_back(static_cast<float>(learner.totals().loss));
  return trained;
}

TEST_F(CudaAgreement, SpiralsTrainAsOnTheCpu) {
  const Dataset data = spirals_task().read({});
  const LearnerOptions options;
  std::vector<rondo::cuda::Communicator> group = rondo::cuda::local_group({0});
  const auto gpu = make_cuda_learner(spirals_task(), data, options, group[0], by_ring(true));
  const auto cpu = make_cpu_learner(spirals_task(), data, options, {},
                                    [](ParameterBlock&) { return Exchange(); });
  const std::vector<float> expected = spirals_trained_by(*cpu, data);
  const std::vector<float> actual = spirals_trained_by(*gpu, data);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-4 * std::max(1.0F, std::abs(expected[i]))) << i;
  }
  std::vector<std::uint32_t> all(data.test.count());
  std::iota(all.begin(), all.end(), 0U);
  EXPECT_NEAR(static_cast<double>(gpu->correct(all)), static_cast<double>(cpu->correct(all)), 1);
}

TEST_F(CudaAgreement, ResNet18TrainsAsOnTheCpu) {
  std::vector<rondo::cuda::Communicator> group = rondo::cuda::local_group({0});
  const auto learner =
      make_cuda_learner(resnet18_task(), small_data(), few_steps(), group[0], by_ring(true, 8192));
  expect_same(train(*learner), on_cpu(few_steps()));
}

// Each rank a thread, both on one device.
std::vector<Trained> on_two_ranks(const LearnerOptions& options) {
  std::vector<rondo::cuda::Communicator> group = rondo::cuda::local_group({0, 0});
  std::vector<Trained> both(2);
  std::vector<std::thread> threads;
  for (rondo::cuda::Communicator& devices : group) {
    threads.emplace_back([&] {
      const auto learner =
          make_cuda_learner(resnet18_task(), small_data(), options, devices, by_ring(true, 8192));
      both[static_cast<std::size_t>(devices.rank())] = train(*learner);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(both[0].parameters, both[1].parameters);
  return both;
}

// With batch normalisation over the samples of all ranks. Of the last minibatch one rank has no
// sample.
TEST_F(CudaAgreement, TwoRanksTrainResNet18AsOneDoes) {
  LearnerOptions options = few_steps();
  const Trained one = on_cpu(options);
  options.sum_norms = [](std::span<double>) {};
  std::vector<Trained> both = on_two_ranks(options);
  EXPECT_EQ(both[0].statistics, both[1].statistics);
  for (std::size_t step = 0; step < kSteps; ++step) both[0].losses[step] += both[1].losses[step];
  expect_same(both[0], one);
}

// With each rank's own, a minibatch of which a rank has no sample leaves its moving averages as
// they were.
TEST_F(CudaAgreement, ARankWithoutSamplesKeepsItsAverages) {
  for (const Trained& rank : on_two_ranks(few_steps())) {
    const auto is_finite = [](float value) { return std::isfinite(value); };
    EXPECT_TRUE(std::all_of(rank.statistics.begin(), rank.statistics.end(), is_finite));
  }
}

}  // namespace
}  // namespace lenet::systems

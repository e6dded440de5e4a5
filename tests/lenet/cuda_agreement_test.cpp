// A GPU's losses agree with the CPU's, step by step; and several ranks on GPUs do the arithmetic of one.

#include <mutex>
#include <rondo/cuda.hpp>
#include <thread>

#include "tests/lenet/agreement.hpp"
#include "trainer.hpp"

namespace lenet {
namespace {

rondo::GradientOptions by_ring(bool overlap) {
  rondo::GradientOptions options;
  options.average = rondo::Average::sum;
  options.algorithm = rondo::Algorithm::ring;
  options.bucket_bytes = std::size_t{32} << 10U;
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
  const auto learner =
      make_cuda_learner(agreement_data(), kAgreementOptions, group[0], by_ring(true));
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
            make_cuda_learner(agreement_data(), kAgreementOptions, devices, by_ring(ranks != 2));
        Trainer trainer(devices.host(), agreement_data(), kAgreementOptions, *learner);
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

}  // namespace
}  // namespace lenet

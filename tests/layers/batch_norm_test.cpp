// Batch normalisation against plain loops, alone and over the samples of several ranks.

#include "examples/layers/cpu/batch_norm.hpp"

#include <cmath>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/ranks.hpp"

namespace lenet {
namespace {

constexpr std::size_t kPixels = 30;
constexpr std::size_t kChannels = 5;

struct Values {
  std::vector<float> input = numbers(kPixels * kChannels, 1);
  std::vector<float> slopes = numbers(kPixels * kChannels, 2);
  std::vector<float> gamma = numbers(kChannels, 3);
  std::vector<float> beta = numbers(kChannels, 4);

  static std::vector<float> numbers(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(1.5F, 2.0F);
    std::vector<float> result(count);
    for (float& value : result) value = normal(random);
    return result;
  }
};

// In double: the sum of output · slopes, whose derivative by the input is what backward() computes.
double product(const Values& values, const std::vector<double>& input) {
  double sum = 0;
  for (std::size_t c = 0; c < kChannels; ++c) {
    double mean = 0;
    double variance = 0;
    for (std::size_t p = 0; p < kPixels; ++p) mean += input[p * kChannels + c] / kPixels;
    for (std::size_t p = 0; p < kPixels; ++p) {
      variance += std::pow(input[p * kChannels + c] - mean, 2) / kPixels;
    }
    for (std::size_t p = 0; p < kPixels; ++p) {
      const std::size_t at = p * kChannels + c;
      const double output =
          values.gamma[c] * (input[at] - mean) / std::sqrt(variance + 1e-5) + values.beta[c];
      sum += output * values.slopes[at];
    }
  }
  return sum;
}

struct Result {
  std::vector<float> output;
  std::vector<float> slopes;
  std::vector<float> gamma_slopes = std::vector<float>(kChannels);
  std::vector<float> beta_slopes = std::vector<float>(kChannels);
};

Result compute(const Values& values, std::size_t first, std::size_t pixels, BatchNorm& norm,
               const SumOverRanks& sum = {}) {
  Result result;
  result.output.resize(pixels * kChannels);
  result.slopes.resize(pixels * kChannels);
  BatchNormPass pass(pixels, kChannels);
  const float* input = values.input.data() + first * kChannels;
  pass.train(norm, sum, input, values.gamma, values.beta, result.output.data());
  pass.backward(sum, input, values.gamma, values.slopes.data() + first * kChannels,
                result.slopes.data(), result.gamma_slopes, result.beta_slopes);
  return result;
}

TEST(BatchNorm, AgreesWithFiniteDifferencesInDouble) {
  const Values values;
  BatchNorm norm(kChannels);
  const Result result = compute(values, 0, kPixels, norm);
  std::vector<double> input(values.input.begin(), values.input.end());
  double sum = 0;
  for (std::size_t i = 0; i < input.size(); ++i) sum += result.output[i] * values.slopes[i];
  EXPECT_NEAR(sum, product(values, input), 1e-3);
  for (std::size_t i = 0; i < input.size(); ++i) {
    constexpr double kStep = 1e-5;
    const double value = input[i];
    input[i] = value + kStep;
    const double above = product(values, input);
    input[i] = value - kStep;
    const double below = product(values, input);
    input[i] = value;
    EXPECT_NEAR(result.slopes[i], (above - below) / (2 * kStep), 1e-4) << i;
  }
}

TEST(BatchNorm, EvaluationTakesTheMovingAverages) {
  const Values values;
  BatchNorm norm(kChannels);
  BatchNormPass pass(kPixels, kChannels);
  std::vector<float> output(values.input.size());
  pass.evaluate(norm, values.input.data(), values.gamma, values.beta, output.data());
  for (std::size_t i = 0; i < output.size(); ++i) {  // mean 0 and variance 1 until training begins
    EXPECT_NEAR(output[i],
                values.input[i] * values.gamma[i % kChannels] + values.beta[i % kChannels], 1e-3);
  }
  std::vector<float> trained(values.input.size());
  for (int step = 0; step < 200; ++step) {
    pass.train(norm, {}, values.input.data(), values.gamma, values.beta, trained.data());
  }
  pass.evaluate(norm, values.input.data(), values.gamma, values.beta, output.data());
  // But for the variance, which in evaluation is that of a sample.
  for (std::size_t i = 0; i < output.size(); ++i) {
    const float beta = values.beta[i % kChannels];
    EXPECT_NEAR((output[i] - beta) * std::sqrt(30.0 / 29), trained[i] - beta, 1e-3);
  }
}

// Three ranks, of which one has no pixels, compute what one computes with all.
TEST(BatchNorm, OverAllRanksIsThatOfTheWholeBatch) {
  const Values values;
  BatchNorm whole_norm(kChannels);
  const Result whole = compute(values, 0, kPixels, whole_norm);
  rondo::test::run_ranks(3, {}, [&](rondo::Communicator& comm) {
    const SumOverRanks sum = [&](std::span<double> sums) { comm.all_reduce(sums); };
    const std::size_t first = comm.rank() == 0 ? 0 : 12;
    const std::size_t pixels = comm.rank() == 0 ? 12 : comm.rank() == 1 ? 18 : 0;
    BatchNorm norm(kChannels);
    Result mine = compute(values, first, pixels, norm, sum);
    for (std::size_t i = 0; i < mine.output.size(); ++i) {
      EXPECT_NEAR(mine.output[i], whole.output[first * kChannels + i], 1e-5);
      EXPECT_NEAR(mine.slopes[i], whole.slopes[first * kChannels + i], 1e-5);
    }
    comm.all_reduce(mine.gamma_slopes);
    comm.all_reduce(mine.beta_slopes);
    for (std::size_t c = 0; c < kChannels; ++c) {
      EXPECT_NEAR(mine.gamma_slopes[c], whole.gamma_slopes[c], 1e-4);
      EXPECT_NEAR(mine.beta_slopes[c], whole.beta_slopes[c], 1e-4);
      EXPECT_NEAR(norm.mean[c], whole_norm.mean[c], 1e-6);
      EXPECT_NEAR(norm.variance[c], whole_norm.variance[c], 1e-5);
    }
  });
}

}  // namespace
}  // namespace lenet

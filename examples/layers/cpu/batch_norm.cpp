#include "batch_norm.hpp"

#include <algorithm>
#include <cmath>

namespace lenet {
namespace {

constexpr float kEpsilon = 1e-5F;
constexpr float kKept = 0.9F;  // of the moving averages, in each step

}  // namespace

BatchNormPass::BatchNormPass(std::size_t pixels, std::size_t channels)
    : pixels_(pixels),
      channels_(channels),
      sums_(2 * channels + 1),
      mean_(channels),
      one_over_deviation_(channels),
      scale_(channels),
      shift_(channels) {}

void BatchNormPass::apply(std::span<const float> scale, std::span<const float> shift,
                          const float* input, float* output) const {
  for (std::size_t pixel = 0; pixel < pixels_; ++pixel) {
    const float* in = input + pixel * channels_;
    float* out = output + pixel * channels_;
    for (std::size_t c = 0; c < channels_; ++c) out[c] = in[c] * scale[c] + shift[c];
  }
}

void BatchNormPass::train(BatchNorm& norm, const SumOverRanks& sum_over_ranks, const float* input,
                          std::span<const float> gamma, std::span<const float> beta,
                          float* output) {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  for (std::size_t pixel = 0; pixel < pixels_; ++pixel) {
    const float* in = input + pixel * channels_;
    for (std::size_t c = 0; c < channels_; ++c) {
      const double value = in[c];
      sums_[c] += value;
      sums_[channels_ + c] += value * value;
    }
  }
  sums_.back() = static_cast<double>(pixels_);
  if (sum_over_ranks) sum_over_ranks(sums_);
  const double all = sums_.back();
  const double unbiased = all / std::max(all - 1, 1.0);
  for (std::size_t c = 0; c < channels_; ++c) {
    const double mean = sums_[c] / all;
    const double variance = std::max(sums_[channels_ + c] / all - mean * mean, 0.0);
    mean_[c] = static_cast<float>(mean);
    one_over_deviation_[c] = static_cast<float>(1 / std::sqrt(variance + kEpsilon));
    norm.mean[c] = kKept * norm.mean[c] + (1 - kKept) * mean_[c];
    norm.variance[c] =
        kKept * norm.variance[c] + (1 - kKept) * static_cast<float>(variance * unbiased);
    scale_[c] = gamma[c] * one_over_deviation_[c];
    shift_[c] = beta[c] - mean_[c] * scale_[c];
  }
  apply(scale_, shift_, input, output);
}

void BatchNormPass::evaluate(const BatchNorm& norm, const float* input,
                             std::span<const float> gamma, std::span<const float> beta,
                             float* output) {
  for (std::size_t c = 0; c < channels_; ++c) {
    scale_[c] = gamma[c] / std::sqrt(norm.variance[c] + kEpsilon);
    shift_[c] = beta[c] - norm.mean[c] * scale_[c];
  }
  apply(scale_, shift_, input, output);
}

// With x' the normalised input, and averages over all samples:
// slope of x = gamma / deviation · (slope − average of slopes − x' · average of (slope · x')).
void BatchNormPass::backward(const SumOverRanks& sum_over_ranks, const float* input,
                             std::span<const float> gamma, const float* output_slopes,
                             float* input_slopes, std::span<float> gamma_slopes,
                             std::span<float> beta_slopes) {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  for (std::size_t pixel = 0; pixel < pixels_; ++pixel) {
    const float* in = input + pixel * channels_;
    const float* slope = output_slopes + pixel * channels_;
    for (std::size_t c = 0; c < channels_; ++c) {
      const float normal = (in[c] - mean_[c]) * one_over_deviation_[c];
      sums_[c] += static_cast<double>(slope[c]);
      sums_[channels_ + c] += static_cast<double>(slope[c] * normal);
    }
  }
  for (std::size_t c = 0; c < channels_; ++c) {
    beta_slopes[c] = static_cast<float>(sums_[c]);
    gamma_slopes[c] = static_cast<float>(sums_[channels_ + c]);
  }
  sums_.back() = static_cast<double>(pixels_);
  if (sum_over_ranks) sum_over_ranks(sums_);
  for (std::size_t c = 0; c < channels_; ++c) {
    scale_[c] = static_cast<float>(sums_[channels_ + c] / sums_.back()) * one_over_deviation_[c];
    shift_[c] = static_cast<float>(sums_[c] / sums_.back()) - mean_[c] * scale_[c];
  }
  for (std::size_t pixel = 0; pixel < pixels_; ++pixel) {
    const float* in = input + pixel * channels_;
    const float* slope = output_slopes + pixel * channels_;
    float* out = input_slopes + pixel * channels_;
    for (std::size_t c = 0; c < channels_; ++c) {
      out[c] = gamma[c] * one_over_deviation_[c] * (slope[c] - in[c] * scale_[c] - shift_[c]);
    }
  }
}

}  // namespace lenet

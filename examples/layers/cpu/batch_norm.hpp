// Batch normalisation over activations that are channels last; by option over the samples of all
// ranks. Written here, and not oneDNN's, since its sums are to go through the library between two
// of its loops.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "examples/layers/task.hpp"

namespace lenet {

// The state of one layer: moving averages, by which evaluation normalises.
struct BatchNorm {
  explicit BatchNorm(std::size_t channels) : mean(channels), variance(channels, 1.0F) {}

  std::vector<float> mean;
  std::vector<float> variance;
};

// Those of a model.
struct BatchNorms {
  std::vector<BatchNorm> layers;  // in forward order; made with the model's first graph
  SumOverRanks sum_over_ranks;    // empty: each rank normalises by its own samples
};

// One batch: `pixels` of all its samples, one after the other, each with all channels.
class BatchNormPass {
 public:
  BatchNormPass(std::size_t pixels, std::size_t channels);

  // output ← gamma · (input − mean) / deviation + beta with the batch's statistics, which also go
  // into the moving averages.
  void train(BatchNorm& norm, const SumOverRanks& sum_over_ranks, const float* input,
             std::span<const float> gamma, std::span<const float> beta, float* output);
  // The same with the moving averages.
  void evaluate(const BatchNorm& norm, const float* input, std::span<const float> gamma,
                std::span<const float> beta, float* output);
  // After train(): the slopes of the input, from those of the output, and the gradients of gamma
  // and beta over this rank's samples.
  void backward(const SumOverRanks& sum_over_ranks, const float* input,
                std::span<const float> gamma, const float* output_slopes, float* input_slopes,
                std::span<float> gamma_slopes, std::span<float> beta_slopes);

 private:
  void apply(std::span<const float> scale, std::span<const float> shift, const float* input,
             float* output) const;

  std::size_t pixels_;
  std::size_t channels_;
  std::vector<double> sums_;  // two of each channel, then the number of pixels
  std::vector<float> mean_;
  std::vector<float> one_over_deviation_;
  std::vector<float> scale_;
  std::vector<float> shift_;
};

}  // namespace lenet

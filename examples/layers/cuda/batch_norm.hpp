// Batch normalisation on a GPU; by option over the samples of all ranks. By kernels of its own, and
// not by cuDNN, since its sums are to go through the library between two of them: the same
// arithmetic as cpu/batch_norm.hpp.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "kernels.hpp"
#include "libraries.hpp"

namespace lenet::cuda {

// The state of one layer: moving averages, by which evaluation normalises.
struct BatchNorm {
  explicit BatchNorm(int of_channels);

  int channels;
  Buffer<float> mean;
  Buffer<float> variance;
};

// Those of a model.
struct BatchNorms {
  std::vector<BatchNorm> layers;  // in forward order; made with the model's first graph
  // Enqueues the sum of `count` values over the ranks, in place; empty: each rank normalises by its
  // own samples.
  std::function<void(double* sums, std::size_t count)> sum_over_ranks;
};

// One layer for one batch size, `dims` of its input and output. Of a rank that has no samples,
// dims.n is 0: the rank takes part in the sums, and no activations are read or written.
class BatchNormPass {
 public:
  explicit BatchNormPass(const Dims& dims);

  // output ← gamma · (input − mean) / deviation + beta with the batch's statistics, which also go
  // into the moving averages.
  void train(const Libraries& on, const BatchNorms& norms, const BatchNorm& norm,
             const float* input, const float* gamma, const float* beta, float* output) const;
  // The same with the moving averages.
  void evaluate(const Libraries& on, const BatchNorm& norm, const float* input, const float* gamma,
                const float* beta, float* output) const;
  // After train(): the slopes of the input, from those of the output, which are added to what is
  // there if `adds`; and the gradients of gamma and beta over this rank's samples.
  void backward(const Libraries& on, const BatchNorms& norms, const float* input,
                const float* gamma, const float* output_slopes, bool adds, float* input_slopes,
                float* gamma_slopes, float* beta_slopes) const;

 private:
  [[nodiscard]] std::size_t sums_count() const {
    return 2 * static_cast<std::size_t>(layout_.channels) + 1;
  }

  ActivationLayout layout_;
  Buffer<double> partial_sums_;
  Buffer<double> sums_;  // two of each channel, then the number of pixels
  Buffer<float> mean_;
  Buffer<float> one_over_deviation_;
};

}  // namespace lenet::cuda

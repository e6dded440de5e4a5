// The kernels that neither cuDNN nor cuBLAS has, or whose sums are to go through the library.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace lenet::cuda {

// Sums over an epoch, in device memory.
struct Totals {
  double loss = 0;
  unsigned long long correct = 0;
  unsigned long long step = 0;  // minibatches done
};

// Samples of a data set in device memory.
struct DeviceSamples {
  const float* inputs = nullptr;
  const std::uint8_t* labels = nullptr;
  std::size_t input_elems = 0;  // of each sample
};

// inputs[i], labels[i] ← sample order[step · stride + offset + i]; `step` is totals->step, so that
// one captured graph serves all minibatches of its size.
void gather(const DeviceSamples& samples, const std::uint32_t* order, const Totals* totals,
            std::size_t stride, std::size_t offset, std::size_t count, float* inputs,
            std::uint8_t* labels, cudaStream_t stream);

// Adds the loss and the right answers of `count` rows of log-probabilities, one for each class, to
// `totals`; leaves the loss's slopes with respect to the logits in `slopes`, unless it is null.
void loss_and_slopes(const float* log_probabilities, const std::uint8_t* labels, std::size_t count,
                     std::size_t classes, float* slopes, Totals* totals, cudaStream_t stream);

// values ← values − rate · slopes, and adds 1 to totals->step.
void descend(float* values, const float* slopes, std::size_t count, float rate, Totals* totals,
             cudaStream_t stream);

// to ← one + other.
void add(const float* one, const float* other, std::size_t count, float* to, cudaStream_t stream);

// Batch normalisation (batch_norm.cpp has the order). Activations are samples × channels × pixels.
// All sums are made in the same order on every run.
struct ActivationLayout {
  int samples = 0;
  int channels = 0;
  int pixels = 0;
};
// Of each channel.
struct Statistics {
  float* mean = nullptr;
  float* one_over_deviation = nullptr;
};

// How many partial sums the next functions need room for.
std::size_t partial_sums_of(int channels);
// sums ← of each channel the sum of its values, then of each the sum of their squares, then the
// number of values.
void sum_squares(const ActivationLayout& layout, const float* input, double* partial_sums,
                 double* sums, cudaStream_t stream);
// The statistics from these sums, and moves the averages by a tenth of the way to them.
void take_statistics(int channels, const double* sums, const Statistics& statistics,
                     float* moving_mean, float* moving_variance, cudaStream_t stream);
void take_moving_averages(int channels, const float* moving_mean, const float* moving_variance,
                          const Statistics& statistics, cudaStream_t stream);
// output ← gamma · (input − mean) / deviation + beta.
void normalise(const ActivationLayout& layout, const Statistics& statistics, const float* input,
               const float* gamma, const float* beta, float* output, cudaStream_t stream);
// sums ← of each channel the sum of the output's slopes, then of each the sum of slope · normalised
// input, then the number of values. The first two are the gradients of beta and gamma, and go
// there, too.
void sum_slopes(const ActivationLayout& layout, const Statistics& statistics, const float* input,
                const float* output_slopes, double* partial_sums, double* sums, float* gamma_slopes,
                float* beta_slopes, cudaStream_t stream);
// The slopes of the input, from these sums; if `adds`, added to what is there.
void slopes_through_norm(const ActivationLayout& layout, const Statistics& statistics,
                         const double* sums, const float* input, const float* gamma,
                         const float* output_slopes, bool adds, float* input_slopes,
                         cudaStream_t stream);

}  // namespace lenet::cuda

#include "kernels.hpp"

#include "launch.hpp"

namespace lenet::cuda {
namespace {

constexpr unsigned kThreads = 256;

// Of each channel, so many threads make partial sums.
constexpr unsigned kLanes = 128;
constexpr float kEpsilon = 1e-5F;
constexpr float kKept = 0.9F;  // of the moving averages, in each step

std::size_t blocks_for(std::size_t count) { return (count + kThreads - 1) / kThreads; }

std::size_t count_of(const ActivationLayout& layout) {
  return static_cast<std::size_t>(layout.samples) * static_cast<std::size_t>(layout.channels) *
         static_cast<std::size_t>(layout.pixels);
}

// A block for each sample.
__global__ void gather_samples(DeviceSamples samples, const std::uint32_t* order,
                               const Totals* totals, std::size_t stride, std::size_t offset,
                               float* inputs, std::uint8_t* labels) {
  const std::size_t i = blockIdx.x;
  const std::size_t sample = order[totals->step * stride + offset + i];
  const std::size_t elems = samples.input_elems;
  for (std::size_t at = threadIdx.x; at < elems; at += blockDim.x) {
    inputs[i * elems + at] = samples.inputs[sample * elems + at];
  }
  if (threadIdx.x == 0) labels[i] = samples.labels[sample];
}

// A thread for each sample.
__global__ void add_loss(const float* log_probabilities, const std::uint8_t* labels,
                         std::size_t count, std::size_t classes, float* slopes, Totals* totals) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float* row = log_probabilities + i * classes;
  std::size_t answer = 0;
  for (std::size_t c = 1; c < classes; ++c) {
    if (row[c] > row[answer]) answer = c;
  }
  atomicAdd(&totals->loss, -static_cast<double>(row[labels[i]]));
  if (answer == labels[i]) atomicAdd(&totals->correct, 1ULL);
  if (slopes == nullptr) return;
  for (std::size_t c = 0; c < classes; ++c) {
    slopes[i * classes + c] = expf(row[c]) - (labels[i] == c ? 1.0F : 0.0F);
  }
}

__global__ void step_downhill(float* values, const float* slopes, std::size_t count, float rate,
                              Totals* totals) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] -= rate * slopes[i];
  if (i == 0) ++totals->step;
}

__global__ void add_two(const float* one, const float* other, std::size_t count, float* to) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = one[i] + other[i];
}

// A block for each channel. `values` has two of each value's position; a thread adds those of every
// kLanes-th one.
template <class Values>
__device__ void add_up(const ActivationLayout& layout, const Values& values, double* partial_sums) {
  const auto channel = static_cast<std::size_t>(blockIdx.x);
  const auto channels = static_cast<std::size_t>(layout.channels);
  const auto pixels = static_cast<std::size_t>(layout.pixels);
  const std::size_t count = static_cast<std::size_t>(layout.samples) * pixels;
  double first = 0;
  double second = 0;
  for (std::size_t i = threadIdx.x; i < count; i += kLanes) {
    const std::size_t at = (i / pixels * channels + channel) * pixels + i % pixels;
    values(at, channel, first, second);
  }
  double* mine = partial_sums + 2 * (channel * kLanes + threadIdx.x);
  mine[0] = first;
  mine[1] = second;
}

__global__ void add_up_squares(ActivationLayout layout, const float* input, double* partial_sums) {
  add_up(
      layout,
      [input](std::size_t at, std::size_t /*channel*/, double& sum, double& squares) {
        const double value = input[at];
        sum += value;
        squares += value * value;
      },
      partial_sums);
}

__global__ void add_up_slopes(ActivationLayout layout, Statistics statistics, const float* input,
                              const float* slopes, double* partial_sums) {
  add_up(
      layout,
      [=](std::size_t at, std::size_t channel, double& sum, double& with_normal) {
        const float normal =
            (input[at] - statistics.mean[channel]) * statistics.one_over_deviation[channel];
        sum += static_cast<double>(slopes[at]);
        with_normal += static_cast<double>(slopes[at] * normal);
      },
      partial_sums);
}

// A thread for each channel. `first` and `second` may be null.
__global__ void add_partial_sums(ActivationLayout layout, const double* partial_sums, double* sums,
                                 float* first, float* second) {
  const std::size_t channel = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const auto channels = static_cast<std::size_t>(layout.channels);
  if (channel >= channels) return;
  double one = 0;
  double other = 0;
  for (std::size_t lane = channel * kLanes; lane < (channel + 1) * kLanes; ++lane) {
    one += partial_sums[2 * lane];
    other += partial_sums[2 * lane + 1];
  }
  sums[channel] = one;
  sums[channels + channel] = other;
  if (first != nullptr) first[channel] = static_cast<float>(one);
  if (second != nullptr) second[channel] = static_cast<float>(other);
  if (channel == 0) {
    sums[2 * channels] = static_cast<double>(layout.samples) * static_cast<double>(layout.pixels);
  }
}

__global__ void statistics_of_sums(std::size_t channels, const double* sums, Statistics statistics,
                                   float* moving_mean, float* moving_variance) {
  const std::size_t c = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  const double all = sums[2 * channels];
  const double mean = sums[c] / all;
  const double square = sums[channels + c] / all - mean * mean;
  const double variance = square > 0 ? square : 0;
  const double unbiased = all > 1 ? all / (all - 1) : 1;
  statistics.mean[c] = static_cast<float>(mean);
  statistics.one_over_deviation[c] =
      static_cast<float>(1 / sqrt(variance + static_cast<double>(kEpsilon)));
  moving_mean[c] = kKept * moving_mean[c] + (1 - kKept) * statistics.mean[c];
  moving_variance[c] =
      kKept * moving_variance[c] + (1 - kKept) * static_cast<float>(variance * unbiased);
}

__global__ void statistics_of_averages(std::size_t channels, const float* moving_mean,
                                       const float* moving_variance, Statistics statistics) {
  const std::size_t c = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  statistics.mean[c] = moving_mean[c];
  statistics.one_over_deviation[c] = 1 / sqrtf(moving_variance[c] + kEpsilon);
}

// The next two have a thread for each value.
__global__ void normalise_values(ActivationLayout layout, std::size_t count, Statistics statistics,
                                 const float* input, const float* gamma, const float* beta,
                                 float* output) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::size_t c =
      i / static_cast<std::size_t>(layout.pixels) % static_cast<std::size_t>(layout.channels);
  const float scale = gamma[c] * statistics.one_over_deviation[c];
  output[i] = input[i] * scale + (beta[c] - statistics.mean[c] * scale);
}

// With x' the normalised input, and averages over all samples:
// slope of x = gamma / deviation · (slope − average of slopes − x' · average of (slope · x')).
__global__ void slopes_of_input(ActivationLayout layout, std::size_t count, Statistics statistics,
                                const double* sums, const float* input, const float* gamma,
                                const float* slopes, bool adds, float* input_slopes) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const auto channels = static_cast<std::size_t>(layout.channels);
  const std::size_t c = i / static_cast<std::size_t>(layout.pixels) % channels;
  const double all = sums[2 * channels];
  const float inverse = statistics.one_over_deviation[c];
  const float scale = static_cast<float>(sums[channels + c] / all) * inverse;
  const float shift = static_cast<float>(sums[c] / all) - statistics.mean[c] * scale;
  const float slope = gamma[c] * inverse * (slopes[i] - input[i] * scale - shift);
  input_slopes[i] = adds ? input_slopes[i] + slope : slope;
}

}  // namespace

void gather(const DeviceSamples& samples, const std::uint32_t* order, const Totals* totals,
            std::size_t stride, std::size_t offset, std::size_t count, float* inputs,
            std::uint8_t* labels, cudaStream_t stream) {
  launch(gather_samples, count, kThreads, stream, samples, order, totals, stride, offset, inputs,
         labels);
}

void loss_and_slopes(const float* log_probabilities, const std::uint8_t* labels, std::size_t count,
                     std::size_t classes, float* slopes, Totals* totals, cudaStream_t stream) {
  launch(add_loss, blocks_for(count), kThreads, stream, log_probabilities, labels, count, classes,
         slopes, totals);
}

void descend(float* values, const float* slopes, std::size_t count, float rate, Totals* totals,
             cudaStream_t stream) {
  launch(step_downhill, blocks_for(count), kThreads, stream, values, slopes, count, rate, totals);
}

void add(const float* one, const float* other, std::size_t count, float* to, cudaStream_t stream) {
  launch(add_two, blocks_for(count), kThreads, stream, one, other, count, to);
}

std::size_t partial_sums_of(int channels) {
  return 2 * static_cast<std::size_t>(channels) * kLanes;
}

void sum_squares(const ActivationLayout& layout, const float* input, double* partial_sums,
                 double* sums, cudaStream_t stream) {
  const auto channels = static_cast<std::size_t>(layout.channels);
  launch(add_up_squares, channels, kLanes, stream, layout, input, partial_sums);
  launch(add_partial_sums, blocks_for(channels), kThreads, stream, layout, partial_sums, sums,
         static_cast<float*>(nullptr), static_cast<float*>(nullptr));
}

void take_statistics(int channels, const double* sums, const Statistics& statistics,
                     float* moving_mean, float* moving_variance, cudaStream_t stream) {
  const auto count = static_cast<std::size_t>(channels);
  launch(statistics_of_sums, blocks_for(count), kThreads, stream, count, sums, statistics,
         moving_mean, moving_variance);
}

void take_moving_averages(int channels, const float* moving_mean, const float* moving_variance,
                          const Statistics& statistics, cudaStream_t stream) {
  const auto count = static_cast<std::size_t>(channels);
  launch(statistics_of_averages, blocks_for(count), kThreads, stream, count, moving_mean,
         moving_variance, statistics);
}

void normalise(const ActivationLayout& layout, const Statistics& statistics, const float* input,
               const float* gamma, const float* beta, float* output, cudaStream_t stream) {
  const std::size_t count = count_of(layout);
  if (count == 0) return;
  launch(normalise_values, blocks_for(count), kThreads, stream, layout, count, statistics, input,
         gamma, beta, output);
}

void sum_slopes(const ActivationLayout& layout, const Statistics& statistics, const float* input,
                const float* output_slopes, double* partial_sums, double* sums, float* gamma_slopes,
                float* beta_slopes, cudaStream_t stream) {
  const auto channels = static_cast<std::size_t>(layout.channels);
  launch(add_up_slopes, channels, kLanes, stream, layout, statistics, input, output_slopes,
         partial_sums);
  launch(add_partial_sums, blocks_for(channels), kThreads, stream, layout, partial_sums, sums,
         beta_slopes, gamma_slopes);
}

void slopes_through_norm(const ActivationLayout& layout, const Statistics& statistics,
                         const double* sums, const float* input, const float* gamma,
                         const float* output_slopes, bool adds, float* input_slopes,
                         cudaStream_t stream) {
  const std::size_t count = count_of(layout);
  if (count == 0) return;
  launch(slopes_of_input, blocks_for(count), kThreads, stream, layout, count, statistics, sums,
         input, gamma, output_slopes, adds, input_slopes);
}

}  // namespace lenet::cuda

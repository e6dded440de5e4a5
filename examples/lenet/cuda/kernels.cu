#include "kernels.hpp"

namespace lenet::cuda {
namespace {

constexpr std::size_t kPixels = 784;
constexpr std::size_t kClasses = 10;
constexpr unsigned kThreads = 256;

unsigned blocks_for(std::size_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

// A block for each sample.
__global__ void gather_samples(DeviceSamples samples, const std::uint32_t* order,
                               const Totals* totals, std::size_t stride, std::size_t offset,
                               float* images, std::uint8_t* labels) {
  const std::size_t i = blockIdx.x;
  const std::size_t sample = order[totals->step * stride + offset + i];
  for (std::size_t pixel = threadIdx.x; pixel < kPixels; pixel += blockDim.x) {
    images[i * kPixels + pixel] =
        static_cast<float>(samples.images[sample * kPixels + pixel]) / 255.0F;
  }
  if (threadIdx.x == 0) labels[i] = samples.labels[sample];
}

// A thread for each sample.
__global__ void add_loss(const float* log_probabilities, const std::uint8_t* labels,
                         std::size_t count, float* slopes, Totals* totals) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float* row = log_probabilities + i * kClasses;
  std::size_t answer = 0;
  for (std::size_t c = 1; c < kClasses; ++c) {
    if (row[c] > row[answer]) answer = c;
  }
  atomicAdd(&totals->loss, -static_cast<double>(row[labels[i]]));
  if (answer == labels[i]) atomicAdd(&totals->correct, 1ULL);
  if (slopes == nullptr) return;
  for (std::size_t c = 0; c < kClasses; ++c) {
    slopes[i * kClasses + c] = expf(row[c]) - (labels[i] == c ? 1.0F : 0.0F);
  }
}

__global__ void step_downhill(float* values, const float* slopes, std::size_t count, float rate,
                              Totals* totals) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] -= rate * slopes[i];
  if (i == 0) ++totals->step;
}

}  // namespace

void gather(const DeviceSamples& samples, const std::uint32_t* order, const Totals* totals,
            std::size_t stride, std::size_t offset, std::size_t count, float* images,
            std::uint8_t* labels, cudaStream_t stream) {
  gather_samples<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(
      samples, order, totals, stride, offset, images, labels);
}

void loss_and_slopes(const float* log_probabilities, const std::uint8_t* labels, std::size_t count,
                     float* slopes, Totals* totals, cudaStream_t stream) {
  add_loss<<<blocks_for(count), kThreads, 0, stream>>>(log_probabilities, labels, count, slopes,
                                                       totals);
}

void descend(float* values, const float* slopes, std::size_t count, float rate, Totals* totals,
             cudaStream_t stream) {
  step_downhill<<<blocks_for(count), kThreads, 0, stream>>>(values, slopes, count, rate, totals);
}

}  // namespace lenet::cuda

// The few kernels that neither cuDNN nor cuBLAS has.
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

// Samples of a data set in device memory, as IDX files hold them.
struct DeviceSamples {
  const std::uint8_t* images = nullptr;
  const std::uint8_t* labels = nullptr;
};

// images[i], labels[i] ← sample order[step · stride + offset + i], pixels in [0, 1]; `step` is
// totals->step, so that one captured graph serves all minibatches of its size.
void gather(const DeviceSamples& samples, const std::uint32_t* order, const Totals* totals,
            std::size_t stride, std::size_t offset, std::size_t count, float* images,
            std::uint8_t* labels, cudaStream_t stream);

// Adds the loss and the right answers of `count` rows of 10 log-probabilities to `totals`; leaves the
// loss's slopes with respect to the logits in `slopes`, unless it is null.
void loss_and_slopes(const float* log_probabilities, const std::uint8_t* labels, std::size_t count,
                     float* slopes, Totals* totals, cudaStream_t stream);

// values ← values − rate · slopes, and adds 1 to totals->step.
void descend(float* values, const float* slopes, std::size_t count, float rate, Totals* totals,
             cudaStream_t stream);

}  // namespace lenet::cuda

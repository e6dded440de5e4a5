// Runs kernels on the host: the threads of all blocks one after the other, so that a kernel may not
// wait for other threads. In place of the trainer's own header, by the order of include folders.
#pragma once

#include <cmath>
#include <cstddef>

#include "cuda_runtime_api.h"
#include "tests/cuda/stand_in.hpp"

// CUDA's own words.
// NOLINTBEGIN(bugprone-reserved-identifier)
#define __global__
#define __device__
// NOLINTEND(bugprone-reserved-identifier)

struct KernelIndex {
  unsigned x = 0;
};
inline thread_local KernelIndex blockIdx, threadIdx, blockDim;

template <class T>
T atomicAdd(T* to, T value) {
  return *to += value;
}

namespace lenet::cuda {

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), std::size_t blocks, unsigned threads,
            cudaStream_t stream, Arguments... arguments) {
  rondo::test::enqueue(stream, [=] {
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
      for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) kernel(arguments...);
    }
  });
}

}  // namespace lenet::cuda

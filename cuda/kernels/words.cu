// Writes words that the host knows to the device's memory.

#include "cuda/kernels/kernels.hpp"

namespace rondo::detail::gpu {
namespace {

__global__ void write_words(const __grid_constant__ WordsToWrite some) {
  for (std::size_t i = threadIdx.x; i < some.count; i += blockDim.x) some.to[i] = some.words[i];
}

}  // namespace

const void* write_words_kernel() { return reinterpret_cast<const void*>(&write_words); }

}  // namespace rondo::detail::gpu

// The test pattern for edges: `canAccessPeer` does not prove that data arrives.

#include "cuda/kernels/kernels.hpp"
#include "fifo/atomics.hpp"

namespace rondo::detail::gpu {
namespace {

// The finaliser of splitmix64: neighbours differ in half of their bits.
__device__ std::uint64_t pattern_word(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t value = (seed << 32U) + index + 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

__global__ void write_pattern(std::uint64_t* words, std::uint64_t count, std::uint64_t seed) {
  for (std::uint64_t i = threadIdx.x; i < count; i += blockDim.x) {
    store_relaxed(words[i], pattern_word(seed, i));
  }
}

__global__ void count_wrong(const std::uint64_t* words, std::uint64_t count, std::uint64_t seed,
                            unsigned long long* wrong) {
  for (std::uint64_t i = threadIdx.x; i < count; i += blockDim.x) {
    if (words[i] != pattern_word(seed, i)) atomicAdd(wrong, 1ULL);
  }
}

}  // namespace

const void* write_pattern_kernel() { return reinterpret_cast<const void*>(&write_pattern); }
const void* count_wrong_kernel() { return reinterpret_cast<const void*>(&count_wrong); }

}  // namespace rondo::detail::gpu

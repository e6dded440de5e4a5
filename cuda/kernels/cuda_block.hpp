// A CUDA block, as the protocol sees it.
#pragma once

#include <cstdint>

#include "cuda/protocol/block.hpp"

namespace rondo::detail::gpu {

class CudaBlock {
 public:
  __device__ CudaBlock(BlockShared& shared, SendEnd* to, RecvEnd* from, RankBuffers* buffers)
      : shared_(shared), to_(to), from_(from), buffers_(buffers) {}

  [[nodiscard]] __device__ unsigned thread() const { return threadIdx.x; }
  [[nodiscard]] __device__ unsigned threads() const { return blockDim.x; }
  [[nodiscard]] __device__ bool leader() const { return threadIdx.x == 0; }
  __device__ void sync() { __syncthreads(); }
  __device__ bool all(bool ok) { return __syncthreads_and(ok ? 1 : 0) != 0; }
  __device__ void pause() {}
  __device__ std::uint64_t now_ns() {
    std::uint64_t time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
  }
  __device__ bool claim() { return atomicExch(&shared_.claimed, 1) == 0; }
  __device__ BlockShared& shared() { return shared_; }
  __device__ SendEnd* to() { return to_; }
  __device__ RecvEnd* from() { return from_; }
  __device__ RankBuffers* buffers() { return buffers_; }

 private:
  BlockShared& shared_;
  SendEnd* to_;
  RecvEnd* from_;
  RankBuffers* buffers_;
};
static_assert(Block<CudaBlock>);

}  // namespace rondo::detail::gpu

// All kernels of one element type, RONDO_KERNEL_TYPE.

#include "api/api.hpp"
#include "kernels/cuda_block.hpp"
#include "kernels/kernels.hpp"
#include "protocol/device_port.hpp"
#include "protocol/one_shot.hpp"
#include "protocol/reduction.hpp"
#include "reduce/dispatch.hpp"

namespace rondo::detail::gpu {
namespace {

// Lays a block out in shared memory, and runs `body` on it.
template <class Body>
__device__ void on_this_block(int ranks, Body body) {
  __shared__ BlockShared shared;
  extern __shared__ std::byte ends[];
  if (threadIdx.x == 0) shared.claimed = 0;
  __syncthreads();
  CudaBlock block(shared, reinterpret_cast<SendEnd*>(ends),
                  reinterpret_cast<RecvEnd*>(ends + static_cast<std::size_t>(ranks) * sizeof(SendEnd)));
  body(block);
}

template <class R>
__global__ void __launch_bounds__(api::kMostThreads, 1)
    ring_kernel(const __grid_constant__ KernelArguments call) {
  on_this_block(call.rank.size,
                [&](CudaBlock& block) { run_ring<R>(block, call, static_cast<int>(blockIdx.x)); });
}

template <class R>
__global__ void __launch_bounds__(api::kMostThreads, 1)
    one_shot_kernel(const __grid_constant__ KernelArguments call) {
  on_this_block(call.rank.size,
                [&](CudaBlock& block) { run_one_shot<R>(block, call, static_cast<int>(blockIdx.x)); });
}

}  // namespace

template <>
const void* kernel_for<RONDO_KERNEL_TYPE>(ReduceOp op, bool one_shot) {
  using T = RONDO_KERNEL_TYPE;
  return with_op<T>(op, [one_shot](auto tag) {
    using R = Reduction<T, decltype(tag)::kOp>;
    return one_shot ? reinterpret_cast<const void*>(&one_shot_kernel<R>)
                    : reinterpret_cast<const void*>(&ring_kernel<R>);
  });
}

}  // namespace rondo::detail::gpu

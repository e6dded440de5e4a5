// All kernels of one element type, RONDO_KERNEL_TYPE.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda/kernels/cuda_block.hpp"
#include "cuda/kernels/kernels.hpp"
#include "cuda/protocol/device_direct.hpp"
#include "cuda/protocol/device_port.hpp"
#include "cuda/protocol/one_shot.hpp"
#include "cuda/protocol/pairwise.hpp"
#include "cuda/protocol/reduction.hpp"
#include "reduce/dispatch.hpp"

namespace rondo::detail::gpu {
namespace {

// Lays a block out in shared memory, and runs `body` on it.
template <class Body>
__device__ void on_this_block(int ranks, Body body) {
  __shared__ BlockShared shared;
  extern __shared__ __align__(16) std::byte ends[];
  static_assert(alignof(SendEnd) <= 16 && alignof(RecvEnd) <= 16 && alignof(RankBuffers) <= 16);
  if (threadIdx.x == 0) shared.claimed = 0;
  __syncthreads();
  std::byte* from = ends + static_cast<std::size_t>(ranks) * sizeof(SendEnd);
  std::byte* buffers = from + static_cast<std::size_t>(ranks) * sizeof(RecvEnd);
  CudaBlock block(shared, reinterpret_cast<SendEnd*>(ends), reinterpret_cast<RecvEnd*>(from),
                  reinterpret_cast<RankBuffers*>(buffers));
  body(block);
}

template <class R>
__global__ void __launch_bounds__(kMostThreads, 1)
    ring_kernel(const __grid_constant__ KernelArguments call) {
  on_this_block(call.rank.size,
                [&](CudaBlock& block) { run_ring<R>(block, call, static_cast<int>(blockIdx.x)); });
}

template <class R>
__global__ void __launch_bounds__(kMostThreads, 1)
    one_shot_kernel(const __grid_constant__ KernelArguments call) {
  on_this_block(call.rank.size, [&](CudaBlock& block) {
    run_one_shot<R>(block, call, static_cast<int>(blockIdx.x));
  });
}

template <class R>
__global__ void __launch_bounds__(kMostThreads, 1)
    direct_kernel(const __grid_constant__ KernelArguments call) {
  on_this_block(call.rank.size, [&](CudaBlock& block) {
    run_direct_or_ring<R>(block, call, static_cast<int>(blockIdx.x));
  });
}

template <class T>
__global__ void __launch_bounds__(kMostThreads, 1)
    pairwise_kernel(const __grid_constant__ KernelArguments call) {
  on_this_block(call.rank.size, [&](CudaBlock& block) {
    run_pairwise<T>(block, call, static_cast<int>(blockIdx.x));
  });
}

// The type whose kernel copies elements of that size: of the types that have kernels, of which no
// integer has 16 bits.
template <std::size_t bytes>
struct Copied;
template <>
struct Copied<1> {
  using Type = std::uint8_t;
};
template <>
struct Copied<2> {
  using Type = BFloat16;
};
template <>
struct Copied<4> {
  using Type = std::uint32_t;
};
template <>
struct Copied<8> {
  using Type = std::uint64_t;
};

template <class T>
const void* copying_kernel() {
  using Type = typename Copied<sizeof(T)>::Type;
  if constexpr (std::is_same_v<T, Type>) {
    return reinterpret_cast<const void*>(&pairwise_kernel<T>);
  } else {
    return kernel_for<Type>(ReduceOp::sum, KernelKind::pairwise);
  }
}

template <class T, ReduceOp op>
const void* kernel_of(KernelKind kind) {
  if (kind == KernelKind::pairwise) return copying_kernel<T>();
  // Sums and products of signed integers have the same bits as those of unsigned ones, which have
  // kernels already.
  if constexpr (!is_common(op)) {
    return nullptr;  // which is not called on devices
  } else if constexpr (std::signed_integral<T> && (op == ReduceOp::sum || op == ReduceOp::prod)) {
    return kernel_for<std::make_unsigned_t<T>>(op, kind);
  } else {
    using R = Reduction<T, op>;
    if (kind == KernelKind::direct) return reinterpret_cast<const void*>(&direct_kernel<R>);
    return kind == KernelKind::one_shot ? reinterpret_cast<const void*>(&one_shot_kernel<R>)
                                        : reinterpret_cast<const void*>(&ring_kernel<R>);
  }
}

}  // namespace

template <>
const void* kernel_for<RONDO_KERNEL_TYPE>(ReduceOp op, KernelKind kind) {
  return with_op<RONDO_KERNEL_TYPE>(
      op, [kind](auto tag) { return kernel_of<RONDO_KERNEL_TYPE, decltype(tag)::kOp>(kind); });
}

}  // namespace rondo::detail::gpu

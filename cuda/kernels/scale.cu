// Scaling, and changes between f32 and the narrow types, around a reduction of gradients; the
// device's half of reduce/scale.hpp, with the same roundings.

#include <type_traits>

#include "cuda/kernels/kernels.hpp"

namespace rondo::detail::gpu {
namespace {

template <class To, class From>
__global__ void scale(To* to, const From* from, std::uint64_t count, double factor) {
  using Wide = std::conditional_t<std::is_same_v<To, double>, double, float>;
  const Wide by = static_cast<Wide>(factor);
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += step) {
    to[i] = static_cast<To>(static_cast<Wide>(from[i]) * by);
  }
}

template <class To, class From>
const void* address() {
  return reinterpret_cast<const void*>(&scale<To, From>);
}

}  // namespace

const void* scale_kernel(DataType to, DataType from) {
  if (to == DataType::f64) return address<double, double>();
  if (to == DataType::f32) {
    if (from == DataType::f16) return address<float, Float16>();
    if (from == DataType::bf16) return address<float, BFloat16>();
    return address<float, float>();
  }
  if (to == DataType::f16) {
    return from == DataType::f32 ? address<Float16, float>() : address<Float16, Float16>();
  }
  return from == DataType::f32 ? address<BFloat16, float>() : address<BFloat16, BFloat16>();
}

}  // namespace rondo::detail::gpu

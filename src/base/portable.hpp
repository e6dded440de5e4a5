// Macros for code that is compiled for both host and device.
#pragma once

#ifdef __CUDACC__
#define RONDO_HOST_DEVICE __host__ __device__
#define RONDO_UNROLL _Pragma("unroll")
#define RONDO_FORCE_INLINE __forceinline__
#define RONDO_NOINLINE __noinline__
#define RONDO_DO_NOT_UNROLL _Pragma("unroll 1")
#else
#define RONDO_HOST_DEVICE
#define RONDO_UNROLL
#define RONDO_FORCE_INLINE inline
#define RONDO_NOINLINE
#define RONDO_DO_NOT_UNROLL
#endif

namespace rondo::detail {

#ifdef __CUDA_ARCH__
inline constexpr bool kOnDevice = true;
#else
inline constexpr bool kOnDevice = false;
#endif

}  // namespace rondo::detail

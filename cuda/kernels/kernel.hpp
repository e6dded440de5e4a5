// Names a kernel of the protocol.
#pragma once

#include <cstdint>

#include <rondo/types.hpp>

namespace rondo::detail::gpu {

// `ring` carries `naive` too, and `direct` the ring too, for buffers that cannot be reached.
// `pairwise` is the same for all operations, and for all types of one size.
enum class KernelKind : std::uint8_t { ring, one_shot, direct, pairwise };
inline constexpr int kKernelKinds = 4;

struct Kernel {
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  KernelKind kind = KernelKind::ring;
};

}  // namespace rondo::detail::gpu

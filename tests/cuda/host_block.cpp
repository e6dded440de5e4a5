#include "tests/cuda/host_block.hpp"

#include "cuda/protocol/device_direct.hpp"
#include "cuda/protocol/device_port.hpp"
#include "cuda/protocol/one_shot.hpp"
#include "cuda/protocol/pairwise.hpp"
#include "cuda/protocol/reduction.hpp"
#include "reduce/dispatch.hpp"

namespace rondo::test {

using detail::gpu::KernelKind;

void run_on_host(const detail::gpu::Kernel& kernel, HostBlock& block,
                 const detail::gpu::KernelArguments& call, int channel) {
  detail::with_type_and_op(kernel.type, kernel.op, [&](auto type_tag, auto op_tag) {
    using T = typename decltype(type_tag)::Type;
    constexpr ReduceOp kOp = decltype(op_tag)::kOp;
    if constexpr (detail::kHasVectors<T, kOp>) {  // as pairs that have kernels have
      using R = detail::gpu::Reduction<T, kOp>;
      if (kernel.kind == KernelKind::one_shot) detail::gpu::run_one_shot<R>(block, call, channel);
      if (kernel.kind == KernelKind::direct) {
        detail::gpu::run_direct_or_ring<R>(block, call, channel);
      }
      if (kernel.kind == KernelKind::pairwise) {
        detail::gpu::run_pairwise<T>(block, call, channel);
      }
      if (kernel.kind == KernelKind::ring) detail::gpu::run_ring<R>(block, call, channel);
    }
  });
}

}  // namespace rondo::test

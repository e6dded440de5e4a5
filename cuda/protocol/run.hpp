// What a kernel does: one block's part in one call.
#pragma once

#include "protocol/device_port.hpp"
#include "protocol/one_shot.hpp"
#include "protocol/reduction.hpp"

namespace rondo::detail::gpu {

template <class T, ReduceOp op, Block B>
RONDO_HOST_DEVICE void run_block(B& block, const KernelArguments& call, int channel) {
  using R = Reduction<T, op>;
  if (call.schedule.algorithm == Algorithm::one_shot) {
    run_one_shot<R>(block, call, channel);
  } else {
    run_ring<R>(block, call, channel);
  }
}

}  // namespace rondo::detail::gpu

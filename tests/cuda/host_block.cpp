#include "tests/cuda/host_block.hpp"

#include "protocol/device_port.hpp"
#include "protocol/one_shot.hpp"
#include "protocol/reduction.hpp"
#include "reduce/dispatch.hpp"

namespace rondo::test {

void run_on_host(DataType type, ReduceOp op, HostBlock& block,
                 const detail::gpu::KernelArguments& call, int channel) {
  detail::with_type_and_op(type, op, [&](auto type_tag, auto op_tag) {
    using R = detail::gpu::Reduction<typename decltype(type_tag)::Type, decltype(op_tag)::kOp>;
    if (call.schedule.algorithm == Algorithm::one_shot) {
      detail::gpu::run_one_shot<R>(block, call, channel);
    } else {
      detail::gpu::run_ring<R>(block, call, channel);
    }
  });
}

}  // namespace rondo::test

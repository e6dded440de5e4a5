#include "engine/by_schedule.hpp"

#include <cassert>
#include <cstring>
#include <vector>

#include "engine/pairwise_edges.hpp"
#include "engine/scratch.hpp"

namespace rondo::detail {
namespace {

// Whether two partners compute the same sums, each for itself.
bool partners_sum_alike(const Schedule& schedule) {
  return schedule.algorithm == Algorithm::recursive_doubling ||
         (schedule.algorithm == Algorithm::halving_doubling &&
          halving::partners_sum_alike(schedule));
}

// Whether the output is larger than what a core's cache keeps, and not already in the cache: in a
// call in place its cache lines have just been read as input.
bool stores_non_temporally(const Wiring& wiring, const Call& call) {
  return call.in != call.out &&
         call.count * element_bytes(call) >= wiring.offers.non_temporal_bytes;
}

}  // namespace

HostCall host_call_of(const Context& context, const Call& call, const Plan& plan,
                      const Signature& signature) {
  HostCall host_call;
  host_call.signature = signature;
  host_call.plan = plan;
  host_call.in = static_cast<const std::byte*>(call.in);
  host_call.out = static_cast<std::byte*>(call.out);
  host_call.element_bytes = element_bytes(call);
  host_call.by_user = call.reduction;
  host_call.kernel = vector_kernel(call.type, call.op);
  host_call.average = average_of(call.type, context.wiring.size);
  host_call.non_temporal = stores_non_temporally(context.wiring, call);
  // min and max pick an operand, and its bits, so partners get the same without.
  const bool picks = call.op == ReduceOp::min || call.op == ReduceOp::max;
  if (partners_sum_alike(plan.schedule) && is_floating(call.type) && !picks) {
    host_call.alike_nans_of = call.type;
  }
  return host_call;
}

void walk(Context& context, const HostCall& call) {
  const Algorithm algorithm = call.plan.schedule.algorithm;
  context.reserve_for(algorithm);
  if (Pump* pump = context.wiring.links.pump.get()) pump->begin_call(algorithm);
  HostPort port(context, call);
  [[maybe_unused]] const bool done = run_schedule(call.plan.schedule, call.plan.slicing, port);
  assert(done);  // a port on a host throws
  context.drain();
}

void run_by_schedule(Context& context, const Call& call, Algorithm algorithm,
                     const Signature& signature) {
  Plan plan = context.plan(call, algorithm);
  const Schedule& schedule = plan.schedule;
  if (uses_pairwise_edges(algorithm)) open_pairwise_edges(context.wiring, plan);
  std::vector<std::byte> scratch;
  Call with_scratch = call;
  if (schedule.needs_scratch()) {
    scratch = take_scratch<std::byte>(context.wiring.links.segment->reserving_turn(),
                                      call.count * element_bytes(call));
    with_scratch.out = scratch.data();
    plan.out_origin = 0;  // it holds the whole vector
  }
  walk(context, host_call_of(context, with_scratch, plan, signature));
  context.confirmation.confirm_before(schedule, signature, context.waiter);
  context.drain();  // this rank may have confirmed
  if (schedule.needs_scratch() && call.collective == Collective::reduce_scatter &&
      plan.own.count > 0) {
    const std::size_t element = element_bytes(call);
    std::memcpy(call.out, scratch.data() + plan.own.offset * element, plan.own.count * element);
  }
}

}  // namespace rondo::detail

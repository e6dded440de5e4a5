#include "engine/hierarchical.hpp"

#include <cassert>

#include "engine/by_schedule.hpp"
#include "engine/owner_port.hpp"

namespace rondo::detail {

Hierarchical::Hierarchical(Context& context)
    : context_(context),
      inside_(context),
      among_leaders_{context.wiring.rank, context.wiring.links.hosts, &context.wiring.links.rail,
                     context.wiring.links.ring_geometry, context.wiring.links.off_ring_geometry} {}

void Hierarchical::run(const Call& call, Algorithm between_hosts, const ShownCall& shown) {
  context_.reserve_for(Algorithm::hierarchical);
  const Links& links = context_.wiring.links;
  const bool crosses = links.hosts > 1;
  // Averages are divided by the number of all ranks between hosts; inside, they are parts of
  // averages, or sums.
  const bool sums = crosses && call.op == ReduceOp::avg && !sums_as_parts(call.type);
  const ReduceOp op = sums ? ReduceOp::sum : call.op;
  AverageFactors average = average_of(call.type, context_.wiring.size);
  if (crosses) average.divisor = 1;
  Plan plan;
  if (between_hosts == Algorithm::ring) {
    plan = rail_plan(call, {links.host, links.hosts, &links.rail, links.rail_geometry});
    inside_.begin(call, op, average, links.rails, plan.slicing);
    plan.slicing.count = inside_.chunk().count;
  } else {
    plan = make_plan(call, between_hosts, among_leaders_, kChunkGranuleBytes);
    inside_.begin(call, op, average, 1, std::nullopt);
  }
  if (links.pump != nullptr) links.pump->begin_call(Algorithm::hierarchical);
  inside_.meet(shown);
  if (crosses && inside_.owns()) run_between(call, plan, shown.signature);
  inside_.finish();
  context_.confirmation.forget();
}

void Hierarchical::run_between(const Call& call, const Plan& plan, const Signature& signature) {
  const Range chunk = inside_.chunk();
  Call between = call;
  between.in = between.out = static_cast<std::byte*>(call.out) + chunk.offset * size_of(call.type);
  between.count = chunk.count;
  HostCall host_call = host_call_of(context_, between, plan, signature);
  host_call.average.scale = 1;
  HostPort port(context_, host_call);
  OwnerPort owner(port, inside_);
  const Waiter::Meanwhile works(context_.waiter, [this] { return inside_.work(); });
  [[maybe_unused]] const bool done = run_schedule(plan.schedule, plan.slicing, owner);
  assert(done);  // a port on a host throws
  context_.drain();
}

}  // namespace rondo::detail

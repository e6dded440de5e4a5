#include "engine/hierarchical.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "engine/by_schedule.hpp"

namespace rondo::detail {

Hierarchical::Hierarchical(Context& context)
    : context_(context),
      inside_(context),
      along_rail_{context.wiring.rank, context.wiring.links.hosts, &context.wiring.links.rail,
                  context.wiring.links.ring_geometry, context.wiring.links.off_ring_geometry} {
  along_rail_.link_costs = link_costs(context.wiring.links.slowest_link);
}

std::uint64_t Hierarchical::piece_elems(const Call& call, const BetweenHosts& between_hosts) const {
  const Links& links = context_.wiring.links;
  const std::size_t element = element_bytes(call);
  // Between leaders the whole vector goes at once, since that is what their schedule is made for.
  if (!between_hosts.along_rails) return std::max<std::uint64_t>(call.count, 1);
  if (links.hosts == 1) return 0;
  const std::uint64_t bytes = rail_piece_bytes(between_hosts.algorithm, call.count * element,
                                               links.hosts, links.rails, along_rail_.link_costs);
  return bytes == 0 ? 0 : std::max<std::uint64_t>(bytes / element, 1);
}

void Hierarchical::run(const Call& call, const BetweenHosts& between_hosts,
                       const ShownCall& shown) {
  context_.reserve_for(Algorithm::hierarchical);
  const Links& links = context_.wiring.links;
  const bool crosses = links.hosts > 1;
  // Averages are divided by the number of all ranks between hosts; inside, they are parts of
  // averages, or sums.
  const bool sums = crosses && call.op == ReduceOp::avg && !sums_as_parts(call.type);
  AverageFactors average = average_of(call.type, context_.wiring.size);
  if (crosses) average.divisor = 1;
  inside_.begin(call, sums ? ReduceOp::sum : call.op, average,
                between_hosts.along_rails ? links.rails : 1, crosses,
                piece_elems(call, between_hosts));
  if (links.pump != nullptr) {
    links.pump->begin_call(Algorithm::hierarchical, between_hosts.algorithm);
  }

  inside_.meet(shown);
  for (std::uint64_t piece = 0; crosses && piece < inside_.pieces(); ++piece) {
    inside_.require_reduced(piece);
    if (!inside_.owns()) continue;
    run_between(call, between_hosts, inside_.chunk(piece), shown.signature);
    inside_.note_final(piece);
  }
  if (crosses && inside_.owns()) context_.drain();
  inside_.finish();
  context_.confirmation.forget();
}

void Hierarchical::run_between(const Call& call, const BetweenHosts& between_hosts,
                               const Range& chunk, const Signature& signature) {
  const Links& links = context_.wiring.links;
  Call between = call;
  between.in = between.out = static_cast<std::byte*>(call.out) + chunk.offset * element_bytes(call);
  between.count = chunk.count;
  Plan plan;
  if (between_hosts.algorithm == Algorithm::ring) {
    plan = rail_plan(call, {links.host, links.hosts, &links.rail, links.rail_geometry});
    plan.slicing.count = chunk.count;
  } else {
    along_rail_.sharing_link = between_hosts.along_rails ? links.rails : 1;
    plan = make_plan(between, between_hosts.algorithm, along_rail_, kChunkGranuleBytes);
  }
  HostCall host_call = host_call_of(context_, between, plan, signature);
  host_call.average.scale = 1;
  HostPort port(context_, host_call);
  const Waiter::Meanwhile works(context_.waiter, [this] { return inside_.work(); });
  [[maybe_unused]] const bool done = run_schedule(plan.schedule, plan.slicing, port);
  assert(done);  // a port on a host throws
}

}  // namespace rondo::detail

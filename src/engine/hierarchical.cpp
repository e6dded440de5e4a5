#include "engine/hierarchical.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "engine/by_schedule.hpp"

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
  const bool by_rails = between_hosts == Algorithm::ring;
  // Averages are divided by the number of all ranks between hosts; inside, they are parts of
  // averages, or sums.
  const bool sums = crosses && call.op == ReduceOp::avg && !sums_as_parts(call.type);
  AverageFactors average = average_of(call.type, context_.wiring.size);
  if (crosses) average.divisor = 1;
  // Between leaders the whole vector goes at once, since that is what their schedule is made for.
  const std::size_t element = size_of(call.type);
  const std::uint64_t along_rails =
      crosses ? rail_piece_bytes(call.count * element, links.hosts, links.slowest_link) / element
              : 0;
  inside_.begin(call, sums ? ReduceOp::sum : call.op, average, by_rails ? links.rails : 1, crosses,
                by_rails ? along_rails : std::max<std::uint64_t>(call.count, 1));
  if (links.pump != nullptr) links.pump->begin_call(Algorithm::hierarchical);

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

void Hierarchical::run_between(const Call& call, Algorithm algorithm, const Range& chunk,
                               const Signature& signature) {
  const Links& links = context_.wiring.links;
  Call between = call;
  between.in = between.out = static_cast<std::byte*>(call.out) + chunk.offset * size_of(call.type);
  between.count = chunk.count;
  Plan plan;
  if (algorithm == Algorithm::ring) {
    plan = rail_plan(call, {links.host, links.hosts, &links.rail, links.rail_geometry});
    plan.slicing.count = chunk.count;
  } else {
    plan = make_plan(call, algorithm, among_leaders_, kChunkGranuleBytes);
  }
  HostCall host_call = host_call_of(context_, between, plan, signature);
  host_call.average.scale = 1;
  HostPort port(context_, host_call);
  const Waiter::Meanwhile works(context_.waiter, [this] { return inside_.work(); });
  [[maybe_unused]] const bool done = run_schedule(plan.schedule, plan.slicing, port);
  assert(done);  // a port on a host throws
}

}  // namespace rondo::detail

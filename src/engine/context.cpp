#include "engine/context.hpp"

#include <numeric>
#include <optional>
#include <utility>

namespace rondo::detail {

Context::Context(Wiring& with)
    : wiring(with),
      waiter(with),
      touching(with, waiter, progress),
      confirmation(with),
      borders_(static_cast<std::size_t>(with.size) + 1),
      received_borders_(borders_),
      in_rank_order_(static_cast<std::size_t>(with.size)),
      place_{with.rank,
             with.size,
             &with.topology.ring,
             with.links.ring_geometry,
             with.links.off_ring_geometry,
             {with.links.pairwise[0].geometry, with.links.pairwise[1].geometry},
             with.links.pump != nullptr,
             with.links.slowest_link,
             1,
             &in_rank_order_,
             &borders_,
             &received_borders_} {
  std::iota(in_rank_order_.begin(), in_rank_order_.end(), 0);
  place_.link_costs = link_costs(with.links.slowest_link);
}

void Context::begin_call(const Call& call, const Signature& signature,
                         std::chrono::milliseconds timeout) {
  progress = {};
  waiter.begin_call(signature, timeout, call.options.background);
  touching.begin_call(call, signature.sequence);
}

void Context::begin_message(const Call& call, const Signature& signature,
                            std::chrono::milliseconds timeout) {
  progress = {};
  waiter.begin_message(signature, timeout, call.options.background);
}

void Context::reserve_for(Algorithm algorithm) {
  if (reserved_.has(algorithm)) return;
  std::vector<SegmentPart> used;
  for (Links::UsedPart& one : wiring.links.used_parts) {
    if (one.users.has(algorithm)) used.push_back(std::exchange(one.part, {}));
  }
  wiring.links.segment->reserve(used);
  reserved_.add(algorithm);
}

void Context::drain() {
  Pump* pump = wiring.links.pump.get();
  if (pump == nullptr) return;
  while (const std::optional<int> peer = pump->busy_peer()) {
    waiter.wait(*peer, [&] { return pump->busy_peer() != peer; });
  }
}

}  // namespace rondo::detail

// The engine's messages: calls between two ranks, which have numbers of their own.
#include <cstring>

#include "base/collective_traits.hpp"
#include "engine/call_text.hpp"
#include "engine/engine.hpp"
#include "engine/pairwise_edges.hpp"

namespace rondo::detail {

void Engine::run_message(const Call& call, std::chrono::milliseconds timeout) {
  const auto next = [&](std::vector<std::uint64_t>& numbers, int peer, int from,
                        std::size_t count) {
    if (peer == kNoRank) return Signature{};
    return signature_of_message(from, numbers[static_cast<std::size_t>(peer)]++, count, call.type);
  };
  const bool both = call.collective == Collective::sendrecv;
  const Signature sent =
      next(messages_to_, sends(call.collective) ? call.to : kNoRank, wiring_.rank, call.count);
  const Signature expected = next(messages_from_, receives(call.collective) ? call.from : kNoRank,
                                  call.from, both ? call.received : call.count);
  const Signature& shown = receives(call.collective) ? expected : sent;
  throw_if_ended(shown);
  if (both && call.to == wiring_.rank) {
    if (call.count > 0) std::memcpy(call.out, call.in, call.count * size_of(call.type));
    return;
  }
  waiter_.begin_message(shown, timeout, call.options.background);
  try {
    const Plan plan = make_plan(call, Algorithm::pairwise, place_, kChunkGranuleBytes);
    open_pairwise_edges(wiring_, plan.schedule);
    walk(call, plan, {sent, expected, shown});
  } catch (...) {
    end_with_thrown(shown, {});
  }
}

}  // namespace rondo::detail

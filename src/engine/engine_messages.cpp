// The engine's messages: calls between two ranks, which have numbers of their own.
#include <cstring>
#include <utility>

#include "base/collective_traits.hpp"
#include "engine/call_text.hpp"
#include "engine/engine.hpp"
#include "engine/pairwise_edges.hpp"
#include "engine/parts.hpp"
#include "engine/send_ahead.hpp"

namespace rondo::detail {

Signature Engine::next_message(const Call& message) {
  const bool sent = message.collective == Collective::send;
  std::vector<std::uint64_t>& numbers = sent ? messages_to_ : messages_from_;
  const int peer = sent ? message.to : message.from;
  std::uint64_t& next = numbers[static_cast<std::size_t>(peer)];
  const std::uint64_t number = std::exchange(next, number_after(next));
  return signature_of_message(sent ? wiring_.rank : peer, number, message.count, message.type);
}

void Engine::run_message(const Call& call, std::chrono::milliseconds timeout) {
  if (call.collective == Collective::sendrecv) {
    run_sendrecv(call, timeout);
    return;
  }
  const Signature signature = next_message(call);
  throw_if_ended(signature);
  waiter_.begin_message(signature, timeout, call.options.background);
  try {
    const Plan plan = make_plan(call, Algorithm::pairwise, place_, kChunkGranuleBytes);
    open_pairwise_edges(wiring_, plan.schedule);
    walk(call, plan, signature);
  } catch (...) {
    end_with_thrown(signature, {});
  }
}

void Engine::run_sendrecv(const Call& call, std::chrono::milliseconds timeout) {
  const Call send = send_of(call);
  const Call recv = recv_of(call);
  const Signature sent = next_message(send);
  const Signature expected = next_message(recv);
  throw_if_ended(expected);
  if (call.to == wiring_.rank) {
    if (call.count > 0) std::memcpy(call.out, call.in, call.count * size_of(call.type));
    return;
  }
  waiter_.begin_message(expected, timeout, call.options.background);
  try {
    exchange(send, sent, recv, expected);
  } catch (...) {
    end_with_thrown(expected, {});
  }
}

void Engine::exchange(const Call& send, const Signature& sent, const Call& recv,
                      const Signature& expected) {
  const Plan out = make_plan(send, Algorithm::pairwise, place_, kChunkGranuleBytes);
  const Plan in = make_plan(recv, Algorithm::pairwise, place_, kChunkGranuleBytes);
  open_pairwise_edges(wiring_, out.schedule);
  open_pairwise_edges(wiring_, in.schedule);
  if (has_pump()) wiring_.links.pump->begin_call(Algorithm::pairwise);
  const HostCall sending = host_call_of(send, out, sent);
  const HostCall receiving = host_call_of(recv, in, expected);
  HostPort to(wiring_, waiter_, sending);
  HostPort from(wiring_, waiter_, receiving);
  SendAhead ahead(to, out);
  while (ahead.advance()) {
  }
  waiter_.set_meanwhile([&] { return ahead.advance(); });
  ReceivingPort port(from, ahead);
  const bool received = run_schedule(in.schedule, in.slicing, port);
  waiter_.set_meanwhile(nullptr);
  if (!received) fail(expected, from.failure(), describe(from.progress()));
  if (!ahead.finish()) fail(sent, to.failure(), describe(to.progress()));
  if (has_pump()) drain(sent, to.progress());
}

}  // namespace rondo::detail

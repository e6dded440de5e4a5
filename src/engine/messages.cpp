#include "engine/messages.hpp"

#include <cassert>
#include <cstring>
#include <utility>

#include "base/collective_traits.hpp"
#include "base/index.hpp"
#include "engine/by_schedule.hpp"
#include "engine/pairwise_edges.hpp"
#include "engine/send_ahead.hpp"
#include "plan/call_signature.hpp"
#include "plan/parts.hpp"

namespace rondo::detail {

Messages::Messages(Context& context, Ending& ending)
    : context_(context),
      ending_(ending),
      messages_to_(static_cast<std::size_t>(context.wiring.size),
                   first_message(context.wiring.links.session)),
      messages_from_(messages_to_) {}

Signature Messages::next_message(const Call& message) {
  const bool sent = message.collective == Collective::send;
  std::vector<std::uint64_t>& numbers = sent ? messages_to_ : messages_from_;
  const int peer = sent ? message.to : message.from;
  std::uint64_t& next = numbers[Index(peer)];
  const std::uint64_t number = std::exchange(next, number_after(next));
  const int sender = sent ? context_.wiring.rank : peer;
  return signature_of_message(sender, number, message.count, message.type);
}

void Messages::run(const Call& call, std::chrono::milliseconds timeout) {
  if (call.collective == Collective::sendrecv) {
    run_sendrecv(call, timeout);
  } else {
    run_one(call, timeout);
  }
}

void Messages::run_one(const Call& call, std::chrono::milliseconds timeout) {
  const Signature signature = next_message(call);
  ending_.throw_if_ended(signature);
  context_.begin_message(call, signature, timeout);
  try {
    const Plan plan = context_.plan(call, Algorithm::pairwise);
    open_pairwise_edges(context_.wiring, plan);
    walk(context_, host_call_of(context_, call, plan, signature));
  } catch (...) {
    ending_.end_with_thrown(signature, {});
  }
}

void Messages::run_sendrecv(const Call& call, std::chrono::milliseconds timeout) {
  const Call send = send_of(call);
  const Call recv = recv_of(call);
  const Signature sent = next_message(send);
  const Signature expected = next_message(recv);
  ending_.throw_if_ended(expected);
  if (call.to == context_.wiring.rank) {
    if (call.count > 0) std::memcpy(call.out, call.in, call.count * element_bytes(call));
    return;
  }
  context_.begin_message(call, expected, timeout);
  Signature in_progress = expected;
  try {
    exchange(send, sent, recv, expected, in_progress);
  } catch (...) {
    ending_.end_with_thrown(in_progress, {});
  }
}

void Messages::exchange(const Call& send, const Signature& sent, const Call& recv,
                        const Signature& expected, Signature& in_progress) {
  const Plan out = context_.plan(send, Algorithm::pairwise);
  const Plan in = context_.plan(recv, Algorithm::pairwise);
  open_pairwise_edges(context_.wiring, out);
  open_pairwise_edges(context_.wiring, in);
  if (Pump* pump = context_.wiring.links.pump.get()) pump->begin_call(Algorithm::pairwise);
  const HostCall sending = host_call_of(context_, send, out, sent);
  const HostCall receiving = host_call_of(context_, recv, in, expected);
  HostPort to(context_, sending);
  HostPort from(context_, receiving);
  SendAhead ahead(to, out);
  while (ahead.advance()) {
  }
  {
    const Waiter::Meanwhile sends(context_.waiter, [&] { return ahead.advance(); });
    ReceivingPort port(from, ahead);
    [[maybe_unused]] const bool done = run_schedule(in.schedule, in.slicing, port);
    assert(done);  // a port on a host throws
  }
  in_progress = sent;
  ahead.finish();
  context_.drain();
}

}  // namespace rondo::detail

// The pump's slots, its start and its end; message_pump_notices.cpp has what ranks tell each other beside slots.
#include "carrier/message_pump.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/log.hpp"
#include "base/write_signals.hpp"

namespace rondo::detail {
namespace {

constexpr std::uint64_t kRoundsPerLook = 64;

}  // namespace

MessagePump::MessagePump(std::unique_ptr<Messenger> messenger, PumpEdges edges)
    : messenger_(std::move(messenger)),
      ranks_elsewhere_(std::move(edges.ranks_elsewhere)),
      board_(edges.board),
      session_(edges.session) {
  memory_->fifos = std::move(edges.fifos);
  for (const PumpEdges::Out& edge : edges.out) add(edge);
  for (const PumpEdges::In& edge : edges.in) add(edge);
  hearing_ = messenger_->receive(kAnyPeer, kAbortTag, &memory_->heard, sizeof(AbortMessage));
  const auto size = static_cast<std::size_t>(messenger_->size());
  told_calls_.resize(size);
  listen_for_calls();
  confirmed_calls_.resize(size);
  expected_calls_.resize(size);
  listen_for_confirmations();
}

void MessagePump::add(const PumpEdges::Out& edge) {
  outgoing_.push_back({edge.peer, edge.algorithms, kFirstSlotTag + edge.channel, edge.published,
                       OperationRing(edge.published.geometry().slots),
                       RunAhead(edge.published.geometry())});
}

void MessagePump::add(const PumpEdges::In& edge) {
  incoming_.push_back({edge.peer, edge.algorithms, kFirstSlotTag + edge.channel, edge.free,
                       OperationRing(edge.free.geometry().slots)});
}

void MessagePump::carry(const PumpEdges::Out& edge, Mapping fifo) {
  memory_->fifos.push_back(std::move(fifo));
  add(edge);
}

void MessagePump::carry(const PumpEdges::In& edge, Mapping fifo) {
  memory_->fifos.push_back(std::move(fifo));
  add(edge);
}

MessagePump::~MessagePump() {
  const WriteSignalsHeld held;  // MPI may write to a socket of a process that has ended
  if (!can_be_driven()) {
    log(LogLevel::warning, "a communicator with MPI edges outlived MPI_Finalize");
  } else if (board_->raised() || !hear_the_rest()) {
    abandon_receives();
  } else if (end_operations()) {
    return;
  }
  // Operations may still be under way, here or at a peer that has not noticed the failure yet. So the memory is never used again, nor,
  // where messages could reach another messenger, the number under which they travel.
  static_cast<void>(memory_.release());
  if (!messenger_->may_end_any_time()) static_cast<void>(messenger_.release());
}

// A confirmation that came after the end of the messenger could be taken by a new one with the same number.
bool MessagePump::hear_what_is_expected() {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (;;) {
    hear_confirmations();
    if (std::equal(confirmed_calls_.begin(), confirmed_calls_.end(), expected_calls_.begin(),
                   std::greater_equal<>())) {
      return true;
    }
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::yield();
  }
}

std::vector<Operation> MessagePump::open_receives() {
  std::vector<Operation> open = {hearing_, hearing_call_, hearing_confirmation_};
  for (Incoming& edge : incoming_) {
    for (; edge.messages.outstanding() > 0; edge.messages.finish_oldest()) {
      open.push_back(edge.messages.oldest());
    }
  }
  return open;
}

std::vector<Operation> MessagePump::open_sends() {
  std::vector<Operation> open = saying_;
  open.push_back(saying_call_);
  open.insert(open.end(), saying_confirmation_.begin(), saying_confirmation_.end());
  for (Outgoing& edge : outgoing_) {
    for (; edge.messages.outstanding() > 0; edge.messages.finish_oldest()) {
      open.push_back(edge.messages.oldest());
    }
  }
  return open;
}

bool MessagePump::hear_the_rest() {
  try {
    if (!hear_what_is_expected()) return false;
    // Several ranks may have sent this one a CallMessage; each of these sends may end only when received.
    for (std::size_t rank = 0; rank < told_calls_.size(); ++rank) look_for_calls();
  } catch (const TransportError&) {
    return false;
  }
  return true;
}

void MessagePump::abandon_receives() {
  for (Operation& receive : open_receives()) {
    if (receive.under_way) messenger_->abandon(receive);
  }
}

bool MessagePump::end_operations() {
  std::vector<Operation> open = open_receives();
  for (Operation& receive : open) {
    if (receive.under_way) messenger_->cancel(receive);
  }
  const std::vector<Operation> sends = open_sends();
  open.insert(open.end(), sends.begin(), sends.end());
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  try {
    while (!messenger_->have_ended(open, "ending a communicator")) {
      if (std::chrono::steady_clock::now() > give_up) return false;
    }
  } catch (const TransportError&) {
    return false;
  }
  return true;
}

void MessagePump::begin_call(Algorithm algorithm) {
  algorithm_ = algorithm;
  drives_all_ = false;
}

bool MessagePump::start_sends(Outgoing& edge) {
  bool started = false;
  const std::uint64_t published = edge.end.published_slots();
  while (edge.messages.outstanding() < published) {
    const SlotHeader* slot = edge.end.slot(edge.messages.outstanding());
    const auto delivery = edge.run_ahead.must_be_taken(sizeof(SlotHeader) + slot->bytes)
                              ? Messenger::Delivery::taken
                              : Messenger::Delivery::sent;
    Operation& message = edge.messages.start();
    message =
        messenger_->send(edge.peer, edge.tag, slot, sizeof(SlotHeader) + slot->bytes, delivery);
    started = true;
  }
  return started;
}

bool MessagePump::start_receives(Incoming& edge) {
  bool started = false;
  const std::uint64_t free_slots = edge.end.free_slots();
  while (edge.messages.outstanding() < free_slots) {
    SlotHeader* slot = edge.end.slot(edge.messages.outstanding());
    Operation& message = edge.messages.start();
    message = messenger_->receive(edge.peer, edge.tag, slot,
                                  sizeof(SlotHeader) + edge.end.geometry().slot_bytes);
    started = true;
  }
  return started;
}

bool MessagePump::finish_oldest(Direction direction) {
  oldest_.clear();
  finishers_.clear();
  for (Outgoing& edge : outgoing_) {
    if (!drives(edge.algorithms) || edge.messages.outstanding() == 0) continue;
    oldest_.push_back({&edge.messages.oldest(), "sending a slot", edge.peer});
    finishers_.push_back({&edge, nullptr});
  }
  if (direction == Direction::both) {
    for (Incoming& edge : incoming_) {
      if (!drives(edge.algorithms) || edge.messages.outstanding() == 0) continue;
      oldest_.push_back({&edge.messages.oldest(), "receiving a slot", edge.peer});
      finishers_.push_back({nullptr, &edge});
    }
  }
  if (oldest_.empty()) return false;
  messenger_->look(oldest_, ended_);
  for (const std::size_t position : ended_) {
    const auto [out, in] = finishers_[position];
    if (out != nullptr) {
      out->messages.finish_oldest();
      out->end.release();
    } else {
      in->messages.finish_oldest();
      in->end.publish();
    }
  }
  return !ended_.empty();
}

bool MessagePump::has_left(int peer) {
  if (!messenger_->has_left(peer)) return false;
  // A rank whose communicator has failed leaves, too. The reason, which another rank may tell, is on its way then.
  constexpr std::chrono::seconds kForTheReasonOfOthers{1};
  return !hears_of_abort(kForTheReasonOfOthers);
}

bool MessagePump::hears_of_abort(std::chrono::milliseconds patience) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  try {
    while (!board_->raised() && std::chrono::steady_clock::now() < give_up) look_for_abort();
  } catch (const TransportError&) {
    return false;  // the first error says more
  }
  return board_->raised();
}

bool MessagePump::progress() {
  bool moved = false;
  unless_told_why([&] { moved = move_slots(); });
  return moved;
}

bool MessagePump::move_slots() {
  bool moved = false;
  for (Outgoing& edge : outgoing_) {
    if (drives(edge.algorithms)) moved |= start_sends(edge);
  }
  for (Incoming& edge : incoming_) {
    if (drives(edge.algorithms)) moved |= start_receives(edge);
  }
  // Open MPI looks at its requests before it polls the network: only a second test sees what the poll completed.
  if (finish_oldest(Direction::both) || finish_oldest(Direction::both)) moved = true;
  if (++rounds_ % kRoundsPerLook == 0) {
    look_for_abort();
    look_for_calls();
  }
  return moved;
}

std::unique_ptr<Pump> MessagePump::another(PumpEdges edges) {
  edges.session = session_ + ++pumps_made_;
  return std::make_unique<MessagePump>(messenger_->another(edges.session), std::move(edges));
}

std::unique_ptr<Pump> MessagePump::among(const std::vector<int>& ranks, PumpEdges edges) {
  return std::make_unique<MessagePump>(messenger_->among(ranks, edges.session), std::move(edges));
}

std::optional<int> MessagePump::busy_peer() {
  std::optional<int> peer;
  unless_told_why([&] {
    for (Outgoing& edge : outgoing_) {
      if (drives(edge.algorithms)) start_sends(edge);
    }
    // Receives are always open; testing them too would poll the network at the end of every call.
    finish_oldest(Direction::out);
    messenger_->have_ended(saying_confirmation_, "telling other hosts of a confirmed call",
                           ranks_elsewhere_);
    peer = peer_still_sent_to();
  });
  return peer;
}

std::optional<int> MessagePump::peer_still_sent_to() {
  for (const Outgoing& edge : outgoing_) {
    if (drives(edge.algorithms) && edge.messages.outstanding() > 0) return edge.peer;
  }
  for (std::size_t i = 0; i < saying_confirmation_.size(); ++i) {
    if (saying_confirmation_[i].under_way) return ranks_elsewhere_[i];
  }
  return std::nullopt;
}

}  // namespace rondo::detail

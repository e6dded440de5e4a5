#include "net/pump.hpp"

#include <cassert>
#include <utility>

#include <rondo/errors.hpp>

#include "base/log.hpp"
#include "base/write_signals.hpp"

namespace rondo::detail {
namespace {

constexpr std::uint64_t kRoundsPerLook = 64;

}  // namespace

Pump::Pump(std::unique_ptr<Messenger> messenger, PumpEdges edges)
    : messenger_(std::move(messenger)),
      ranks_elsewhere_(std::move(edges.ranks_elsewhere)),
      board_(edges.board),
      session_(edges.session),
      notices_(*messenger_, *board_, ranks_elsewhere_, session_),
      fifos_(std::make_unique<std::vector<Mapping>>(std::move(edges.fifos))) {
  for (const PumpEdges::Out& edge : edges.out) add(edge);
  for (const PumpEdges::In& edge : edges.in) add(edge);
  // Last, since from now on the messenger writes to memory of this pump.
  try {
    notices_.listen();
  } catch (...) {
    abandon_memory();  // some of the receives may be under way
    throw;
  }
}

void Pump::add(const PumpEdges::Out& edge) {
  outgoing_.push_back({edge.peer, edge.algorithms, edge.between_hosts, kFirstSlotTag + edge.channel,
                       edge.published, OperationRing(edge.published.geometry().slots),
                       RunAhead(edge.published.geometry())});
}

void Pump::add(const PumpEdges::In& edge) {
  incoming_.push_back({edge.peer, edge.algorithms, edge.between_hosts, kFirstSlotTag + edge.channel,
                       edge.free, OperationRing(edge.free.geometry().slots)});
}

void Pump::carry(const PumpEdges::Out& edge, Mapping fifo) {
  fifos_->push_back(std::move(fifo));
  add(edge);
}

void Pump::carry(const PumpEdges::In& edge, Mapping fifo) {
  fifos_->push_back(std::move(fifo));
  add(edge);
}

Pump::~Pump() {
  const WriteSignalsHeld held;  // MPI may write to a socket of a process that has ended
  if (!can_be_driven()) {
    log(LogLevel::warning, "a communicator with MPI edges outlived MPI_Finalize");
  } else if (board_->raised() || !notices_.receive_the_rest()) {
    abandon_receives();
  } else if (end_operations()) {
    return;
  }
  // Operations may still be under way, here or at a peer that has not noticed the failure yet.
  abandon_memory();
}

void Pump::abandon_memory() {
  notices_.abandon_memory();
  static_cast<void>(fifos_.release());
  if (!messenger_->may_end_any_time()) static_cast<void>(messenger_.release());
}

std::vector<Operation> Pump::open_receives() {
  std::vector<Operation> open = notices_.open_receives();
  for (Incoming& edge : incoming_) {
    for (; edge.messages.outstanding() > 0; edge.messages.finish_oldest()) {
      open.push_back(edge.messages.oldest());
    }
  }
  return open;
}

std::vector<Operation> Pump::open_sends() {
  std::vector<Operation> open = notices_.open_sends();
  for (Outgoing& edge : outgoing_) {
    for (; edge.messages.outstanding() > 0; edge.messages.finish_oldest()) {
      open.push_back(edge.messages.oldest());
    }
  }
  return open;
}

void Pump::abandon_receives() {
  for (Operation& receive : open_receives()) {
    if (receive.under_way) messenger_->abandon(receive);
  }
}

bool Pump::end_operations() {
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

void Pump::begin_call(Algorithm algorithm, Algorithm between_hosts) {
  assert((algorithm == Algorithm::hierarchical) == (between_hosts != Algorithm::automatic));
  algorithm_ = algorithm;
  between_hosts_ = between_hosts;
  drives_all_ = false;
}

bool Pump::start_sends(Outgoing& edge) {
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

bool Pump::start_receives(Incoming& edge) {
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

bool Pump::finish_oldest(Direction direction) {
  oldest_.clear();
  finishers_.clear();
  for (Outgoing& edge : outgoing_) {
    if (!drives(edge) || edge.messages.outstanding() == 0) continue;
    oldest_.push_back({&edge.messages.oldest(), "sending a slot", edge.peer});
    finishers_.push_back({&edge, nullptr});
  }
  if (direction == Direction::both) {
    for (Incoming& edge : incoming_) {
      if (!drives(edge) || edge.messages.outstanding() == 0) continue;
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

bool Pump::has_left(int peer) {
  if (!messenger_->has_left(peer)) return false;
  // A rank whose communicator has failed leaves, too. The reason, which another rank may
  // send, is on its way then.
  constexpr std::chrono::seconds kForTheReasonOfOthers{1};
  return !notices_.receives_abort(kForTheReasonOfOthers);
}

bool Pump::progress() {
  bool moved = false;
  notices_.unless_told_why([&] { moved = move_slots(); });
  return moved;
}

bool Pump::move_slots() {
  bool moved = false;
  for (Outgoing& edge : outgoing_) {
    if (drives(edge)) moved |= start_sends(edge);
  }
  for (Incoming& edge : incoming_) {
    if (drives(edge)) moved |= start_receives(edge);
  }
  // Open MPI looks at its requests before it polls the network: only a second test sees what the
  // poll completed.
  if (finish_oldest(Direction::both) || finish_oldest(Direction::both)) moved = true;
  if (++rounds_ % kRoundsPerLook == 0) {
    notices_.look_for_abort();
    notices_.look_for_calls();
  }
  return moved;
}

std::optional<int> Pump::busy_peer() {
  std::optional<int> peer;
  notices_.unless_told_why([&] {
    for (Outgoing& edge : outgoing_) {
      if (drives(edge)) start_sends(edge);
    }
    // Receives are always open; testing them too would poll the network at the end of every call.
    finish_oldest(Direction::out);
    for (const Outgoing& edge : outgoing_) {
      if (!drives(edge) || edge.messages.outstanding() == 0) continue;
      peer = edge.peer;
      return;
    }
    peer = notices_.peer_still_told();
  });
  return peer;
}

std::unique_ptr<Pump> Pump::another(PumpEdges edges) {
  edges.session = session_ + ++pumps_made_;
  return std::make_unique<Pump>(messenger_->another(edges.session), std::move(edges));
}

std::unique_ptr<Pump> Pump::among(const std::vector<int>& ranks, PumpEdges edges) {
  return std::make_unique<Pump>(messenger_->among(ranks, edges.session), std::move(edges));
}

}  // namespace rondo::detail

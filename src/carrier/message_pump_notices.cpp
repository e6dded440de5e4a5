// What ranks of different hosts tell each other beside slots: that the communicator has ended, which call they are in,
// and that all ranks made a call.
#include "carrier/message_pump.hpp"

#include <algorithm>
#include <chrono>

#include "base/log.hpp"

namespace rondo::detail {

void MessagePump::look_for_abort() {
  if (!can_be_driven()) return;
  if (!hearing_.under_way || !messenger_->has_ended(hearing_, "listening for an abort", kAnyPeer)) {
    return;
  }
  memory_->heard.text.back() = '\0';
  board_->raise(memory_->heard.rank, memory_->heard.text.data());
}

void MessagePump::listen_for_calls() {
  hearing_call_ =
      messenger_->receive(kAnyPeer, kCallTag, &memory_->heard_call, sizeof(CallMessage));
}

void MessagePump::look_for_calls() {
  while (messenger_->has_ended(hearing_call_, "listening for calls of other ranks", kAnyPeer)) {
    const CallMessage& heard = memory_->heard_call;
    const auto rank = static_cast<std::size_t>(heard.rank);
    if (heard.session == session_ && rank < told_calls_.size()) told_calls_[rank] = heard.call;
    listen_for_calls();
  }
}

void MessagePump::tell_call(int peer, const Signature& call) {
  unless_told_why([&] { return send_call(peer, call); });
}

// Whether it sends anything.
bool MessagePump::send_call(int peer, const Signature& call) {
  if (!messenger_->has_ended(saying_call_, "telling a rank of a call", told_peer_)) {
    return false;  // a later tell_call() sends it
  }
  CallMessage& said = memory_->said_call;
  if (told_peer_ == peer && said.call == call) return false;
  said = {session_, messenger_->rank(), call};
  told_peer_ = peer;
  // Ends only when the peer has taken it: if the peer destroys its communicator first, this rank keeps the messenger's
  // number, and the message never reaches a communicator made later.
  saying_call_ =
      messenger_->send(peer, kCallTag, &said, sizeof(CallMessage), Messenger::Delivery::taken);
  return true;
}

void MessagePump::listen_for_confirmations() {
  hearing_confirmation_ = messenger_->receive(kAnyPeer, kConfirmTag, &memory_->heard_confirmation,
                                              sizeof(ConfirmMessage));
}

void MessagePump::hear_confirmations() {
  unless_told_why([this] { return receive_confirmations(); });
}

// Whether any had arrived.
bool MessagePump::receive_confirmations() {
  bool received = false;
  while (messenger_->has_ended(hearing_confirmation_, "listening for confirmed calls", kAnyPeer)) {
    const ConfirmMessage& heard = memory_->heard_confirmation;
    const auto rank = static_cast<std::size_t>(heard.rank);
    if (heard.session == session_ && rank < confirmed_calls_.size()) {
      confirmed_calls_[rank] = heard.sequence + 1;
    }
    listen_for_confirmations();
    received = true;
  }
  return received;
}

void MessagePump::tell_confirmed(std::uint64_t sequence) {
  unless_told_why([&] { return send_confirmations(sequence); });
}

// Does not wait for its sends: a confirmation still under way keeps its memory, and the next one uses other memory.
bool MessagePump::send_confirmations(std::uint64_t sequence) {
  std::list<Telling>& tellings = memory_->tellings;
  const bool over =
      !tellings.empty() && messenger_->have_ended(tellings.front().operations,
                                                  "telling other hosts of a confirmed call");
  if (over) {
    tellings.splice(tellings.end(), tellings, tellings.begin());
  } else {
    tellings.push_back({{}, std::vector<Operation>(ranks_elsewhere_.size())});
  }
  Telling& telling = tellings.back();
  telling.said = {session_, messenger_->rank(), sequence};
  for (std::size_t i = 0; i < ranks_elsewhere_.size(); ++i) {
    telling.operations[i] = messenger_->send(ranks_elsewhere_[i], kConfirmTag, &telling.said,
                                             sizeof(ConfirmMessage), Messenger::Delivery::sent);
  }
  return true;
}

void MessagePump::announce_abort(const AbortRecord& record) noexcept {
  // If the abort comes from a rank elsewhere, that rank has told all others itself.
  const bool from_elsewhere = std::find(ranks_elsewhere_.begin(), ranks_elsewhere_.end(),
                                        record.rank) != ranks_elsewhere_.end();
  if (!can_be_driven() || announced_ || from_elsewhere) return;
  announced_ = true;
  AbortMessage& said = memory_->said;
  said.rank = record.rank;
  std::memcpy(said.text.data(), record.text.data(),
              std::min(record.text.size(), said.text.size() - 1));
  // A rank that is gone already keeps none of the others from being told.
  const auto try_to = [](auto&& what) {
    try {
      what();
    } catch (const std::exception& error) {
      log(LogLevel::warning, "could not tell other hosts of an abort: {}", error.what());
    }
  };
  for (const int rank : ranks_elsewhere_) {
    try_to([&] {
      saying_.push_back(messenger_->send(rank, kAbortTag, &said, sizeof(AbortMessage),
                                         Messenger::Delivery::sent));
    });
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (Operation& operation : saying_) {
    try_to([&] {
      while (!messenger_->has_ended(operation, "announcing an abort", kAnyPeer) &&
             std::chrono::steady_clock::now() < give_up) {
      }
    });
  }
}

}  // namespace rondo::detail

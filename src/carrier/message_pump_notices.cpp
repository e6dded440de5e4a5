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
  unless_told_why([&] { send_call(peer, call); });
}

void MessagePump::send_call(int peer, const Signature& call) {
  if (!messenger_->has_ended(saying_call_, "telling a rank of a call", told_peer_)) {
    return;  // a later tell_call() sends it
  }
  CallMessage& said = memory_->said_call;
  if (told_peer_ == peer && said.call == call) return;
  said = {session_, messenger_->rank(), call};
  told_peer_ = peer;
  // Where it could reach a communicator made later, it ends only when the peer has taken it: if the peer destroys its
  // communicator first, this rank keeps the messenger's number.
  const auto delivery =
      messenger_->may_end_any_time() ? Messenger::Delivery::sent : Messenger::Delivery::taken;
  saying_call_ = messenger_->send(peer, kCallTag, &said, sizeof(CallMessage), delivery);
}

void MessagePump::listen_for_confirmations() {
  hearing_confirmation_ = messenger_->receive(kAnyPeer, kConfirmTag, &memory_->heard_confirmation,
                                              sizeof(ConfirmMessage));
}

void MessagePump::hear_confirmations() {
  unless_told_why([this] { receive_confirmations(); });
}

void MessagePump::receive_confirmations() {
  while (messenger_->has_ended(hearing_confirmation_, "listening for confirmed calls", kAnyPeer)) {
    const ConfirmMessage& heard = memory_->heard_confirmation;
    const auto rank = static_cast<std::size_t>(heard.rank);
    if (heard.session == session_ && rank < confirmed_calls_.size()) {
      confirmed_calls_[rank] = heard.sequence + 1;
    }
    listen_for_confirmations();
  }
}

void MessagePump::tell_confirmed(std::uint64_t sequence) {
  unless_told_why([&] { send_confirmation(sequence); });
}

// The last confirmation has left: the call that it belongs to waited for that (busy_peer()).
void MessagePump::send_confirmation(std::uint64_t sequence) {
  ConfirmMessage& said = memory_->said_confirmation;
  said = {session_, messenger_->rank(), sequence};
  saying_confirmation_.clear();
  for (const int rank : ranks_elsewhere_) {
    saying_confirmation_.push_back(messenger_->send(
        rank, kConfirmTag, &said, sizeof(ConfirmMessage), Messenger::Delivery::sent));
  }
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

#include "net/notices.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "base/log.hpp"

namespace rondo::detail {

Notices::Notices(Messenger& messenger, AbortBoard& board, std::vector<int> ranks_elsewhere,
                 std::uint64_t session)
    : messenger_(messenger),
      board_(board),
      ranks_elsewhere_(std::move(ranks_elsewhere)),
      session_(session),
      told_calls_(static_cast<std::size_t>(messenger.size())),
      confirmed_calls_(told_calls_.size()),
      expected_calls_(told_calls_.size()) {}

void Notices::listen() {
  receiving_abort_ =
      messenger_.receive(kAnyPeer, kAbortTag, &memory_->received_abort, sizeof(AbortMessage));
  receive_call();
  receive_confirmation();
}

void Notices::look_for_abort() {
  if (!messenger_.can_be_used() || !receiving_abort_.under_way) return;
  if (!messenger_.has_ended(receiving_abort_, "listening for an abort", kAnyPeer)) return;
  AbortMessage& received = memory_->received_abort;
  received.text.back() = '\0';
  board_.raise(received.rank, received.text.data());
}

bool Notices::receives_abort(std::chrono::milliseconds patience) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  try {
    while (!board_.raised() && std::chrono::steady_clock::now() < give_up) look_for_abort();
  } catch (const TransportError&) {
    return false;  // the first error says more
  }
  return board_.raised();
}

void Notices::announce_abort(const AbortRecord& record) noexcept {
  // If the abort comes from a rank on another host, that rank has sent it to all others itself.
  const bool from_elsewhere = std::find(ranks_elsewhere_.begin(), ranks_elsewhere_.end(),
                                        record.rank) != ranks_elsewhere_.end();
  if (!messenger_.can_be_used() || announced_ || from_elsewhere) return;
  announced_ = true;
  AbortMessage& message = memory_->sent_abort;
  message.rank = record.rank;
  std::memcpy(message.text.data(), record.text.data(),
              std::min(record.text.size(), message.text.size() - 1));
  // A send to a rank that is gone already may fail; the others get the abort even so.
  const auto try_to = [](auto&& what) {
    try {
      what();
    } catch (const std::exception& error) {
      log(LogLevel::warning, "could not tell other hosts of an abort: {}", error.what());
    }
  };
  for (const int rank : ranks_elsewhere_) {
    try_to([&] {
      sending_aborts_.push_back(messenger_.send(rank, kAbortTag, &message, sizeof(AbortMessage),
                                                Messenger::Delivery::sent));
    });
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (Operation& operation : sending_aborts_) {
    try_to([&] {
      while (!messenger_.has_ended(operation, "announcing an abort", kAnyPeer) &&
             std::chrono::steady_clock::now() < give_up) {
      }
    });
  }
}

void Notices::receive_call() {
  receiving_call_ =
      messenger_.receive(kAnyPeer, kCallTag, &memory_->received_call, sizeof(CallMessage));
}

void Notices::look_for_calls() {
  while (messenger_.has_ended(receiving_call_, "listening for calls of other ranks", kAnyPeer)) {
    const CallMessage& received = memory_->received_call;
    const auto rank = static_cast<std::size_t>(received.rank);
    if (received.session == session_ && rank < told_calls_.size()) {
      told_calls_[rank] = received.call;
    }
    receive_call();
  }
}

void Notices::tell_call(int peer, const Signature& call) {
  unless_told_why([&] { send_call(peer, call); });
}

void Notices::send_call(int peer, const Signature& call) {
  if (!messenger_.has_ended(sending_call_, "telling a rank of a call", told_peer_)) {
    return;  // the message before still uses the memory: the caller comes again
  }
  CallMessage& message = memory_->sent_call;
  if (told_peer_ == peer && message.call == call) return;
  message = {session_, messenger_.rank(), call};
  told_peer_ = peer;
  // By MPI, a message that nobody has taken could reach a later communicator with the same number.
  // So it has ended only when the peer has taken it; if the peer never does, this messenger's
  // number is never used again.
  const auto delivery =
      messenger_.may_end_any_time() ? Messenger::Delivery::sent : Messenger::Delivery::taken;
  sending_call_ = messenger_.send(peer, kCallTag, &message, sizeof(CallMessage), delivery);
}

void Notices::receive_confirmation() {
  receiving_confirmation_ = messenger_.receive(
      kAnyPeer, kConfirmTag, &memory_->received_confirmation, sizeof(ConfirmMessage));
}

void Notices::look_for_confirmations() {
  unless_told_why([this] {
    while (
        messenger_.has_ended(receiving_confirmation_, "listening for confirmed calls", kAnyPeer)) {
      const ConfirmMessage& received = memory_->received_confirmation;
      const auto rank = static_cast<std::size_t>(received.rank);
      if (received.session == session_ && rank < confirmed_calls_.size()) {
        confirmed_calls_[rank] = received.sequence + 1;
      }
      receive_confirmation();
    }
  });
}

// The last confirmation has left: the call that it belongs to waited for that (peer_still_told()).
void Notices::tell_confirmed(std::uint64_t sequence) {
  unless_told_why([&] {
    ConfirmMessage& message = memory_->sent_confirmation;
    message = {session_, messenger_.rank(), sequence};
    sending_confirmations_.clear();
    for (const int rank : ranks_elsewhere_) {
      sending_confirmations_.push_back(messenger_.send(
          rank, kConfirmTag, &message, sizeof(ConfirmMessage), Messenger::Delivery::sent));
    }
  });
}

std::optional<int> Notices::peer_still_told() {
  messenger_.have_ended(sending_confirmations_, "telling other hosts of a confirmed call",
                        ranks_elsewhere_);
  for (std::size_t i = 0; i < sending_confirmations_.size(); ++i) {
    if (sending_confirmations_[i].under_way) return ranks_elsewhere_[i];
  }
  return std::nullopt;
}

// A confirmation that came after the end of the messenger could be taken by a new one with the same
// number.
bool Notices::receive_what_is_expected() {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (;;) {
    look_for_confirmations();
    if (std::equal(confirmed_calls_.begin(), confirmed_calls_.end(), expected_calls_.begin(),
                   std::greater_equal<>())) {
      return true;
    }
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::yield();
  }
}

bool Notices::receive_the_rest() {
  try {
    if (!receive_what_is_expected()) return false;
    // Several ranks may have sent this one a CallMessage; each of these sends may end only when
    // received.
    for (std::size_t rank = 0; rank < told_calls_.size(); ++rank) look_for_calls();
  } catch (const TransportError&) {
    return false;
  }
  return true;
}

std::vector<Operation> Notices::open_receives() const {
  return {receiving_abort_, receiving_call_, receiving_confirmation_};
}

std::vector<Operation> Notices::open_sends() const {
  std::vector<Operation> open = sending_aborts_;
  open.push_back(sending_call_);
  open.insert(open.end(), sending_confirmations_.begin(), sending_confirmations_.end());
  return open;
}

}  // namespace rondo::detail

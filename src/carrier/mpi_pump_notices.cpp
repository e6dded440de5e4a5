// What ranks of different hosts tell each other beside slots: that the communicator has ended, which call they are in,
// and that all ranks made a call.
#include "carrier/mpi_pump.hpp"

#include <algorithm>
#include <chrono>

#include "base/check_mpi.hpp"
#include "base/log.hpp"

namespace rondo::detail {

bool MpiPump::finished(MPI_Request& request, const char* what, int peer) {
  int done = 0;
  check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what, peer);
  return done != 0;
}

void MpiPump::look_for_abort() {
  if (!can_be_driven()) return;
  if (hearing_ == MPI_REQUEST_NULL || !finished(hearing_, "listening for an abort", kAnyPeer))
    return;
  memory_->heard.text.back() = '\0';
  board_->raise(memory_->heard.rank, memory_->heard.text.data());
}

void MpiPump::listen_for_calls() {
  check_mpi(MPI_Irecv(&memory_->heard_call, sizeof(CallMessage), MPI_BYTE, MPI_ANY_SOURCE, kCallTag,
                      comm_, &hearing_call_),
            "MPI_Irecv");
}

void MpiPump::look_for_calls() {
  while (finished(hearing_call_, "listening for calls of other ranks", kAnyPeer)) {
    const CallMessage& heard = memory_->heard_call;
    const auto rank = static_cast<std::size_t>(heard.rank);
    if (heard.session == session_ && rank < told_calls_.size()) told_calls_[rank] = heard.call;
    listen_for_calls();
  }
}

void MpiPump::tell_call(int peer, const Signature& call) {
  if (saying_call_ != MPI_REQUEST_NULL &&
      !finished(saying_call_, "telling a rank of a call", told_peer_)) {
    return;  // a later tell_call() sends it
  }
  CallMessage& said = memory_->said_call;
  if (told_peer_ == peer && said.call == call) return;
  said = {session_, rank_, call};
  told_peer_ = peer;
  // Synchronous, so that the send ends only when the peer has received it: if the peer destroys its communicator
  // first, this rank keeps the MPI communicator's number, and the message never reaches a communicator made later.
  check_mpi(MPI_Issend(&said, sizeof(CallMessage), MPI_BYTE, peer, kCallTag, comm_, &saying_call_),
            "MPI_Issend", peer);
}

void MpiPump::listen_for_confirmations() {
  check_mpi(MPI_Irecv(&memory_->heard_confirmation, sizeof(ConfirmMessage), MPI_BYTE,
                      MPI_ANY_SOURCE, kConfirmTag, comm_, &hearing_confirmation_),
            "MPI_Irecv");
}

void MpiPump::hear_confirmations() {
  while (finished(hearing_confirmation_, "listening for confirmed calls", kAnyPeer)) {
    const ConfirmMessage& heard = memory_->heard_confirmation;
    const auto rank = static_cast<std::size_t>(heard.rank);
    if (heard.session == session_ && rank < confirmed_calls_.size()) {
      confirmed_calls_[rank] = heard.sequence + 1;
    }
    listen_for_confirmations();
  }
}

// MPI opens a connection at its first use, and only inside MPI calls. After a confirmation this rank may make no MPI
// call for a long time, so the connections must exist before that.
void MpiPump::open_connections() {
  std::vector<MPI_Request> open;
  for (const int rank : ranks_elsewhere_) {
    check_mpi(MPI_Irecv(nullptr, 0, MPI_BYTE, rank, kConnectTag, comm_,
                        &open.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Irecv", rank);
    check_mpi(MPI_Isend(nullptr, 0, MPI_BYTE, rank, kConnectTag, comm_,
                        &open.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Isend", rank);
  }
  check_mpi(MPI_Waitall(static_cast<int>(open.size()), open.data(), MPI_STATUSES_IGNORE),
            "connecting all ranks");
}

// Does not wait for its sends: a confirmation still under way keeps its memory, and the next one uses other memory.
void MpiPump::tell_confirmed(std::uint64_t sequence) {
  std::list<Telling>& tellings = memory_->tellings;
  int over = 0;
  if (!tellings.empty()) {
    std::vector<MPI_Request>& oldest = tellings.front().requests;
    check_mpi(
        MPI_Testall(static_cast<int>(oldest.size()), oldest.data(), &over, MPI_STATUSES_IGNORE),
        "telling other hosts of a confirmed call");
  }
  if (over != 0) {
    tellings.splice(tellings.end(), tellings, tellings.begin());
  } else {
    tellings.push_back({{}, std::vector<MPI_Request>(ranks_elsewhere_.size(), MPI_REQUEST_NULL)});
  }
  Telling& telling = tellings.back();
  telling.said = {session_, rank_, sequence};
  for (std::size_t i = 0; i < ranks_elsewhere_.size(); ++i) {
    check_mpi(MPI_Isend(&telling.said, sizeof(ConfirmMessage), MPI_BYTE, ranks_elsewhere_[i],
                        kConfirmTag, comm_, &telling.requests[i]),
              "MPI_Isend", ranks_elsewhere_[i]);
  }
}

void MpiPump::announce_abort(const AbortRecord& record) noexcept {
  // If the abort comes from a rank elsewhere, that rank has told all others itself.
  const bool from_elsewhere = std::find(ranks_elsewhere_.begin(), ranks_elsewhere_.end(),
                                        record.rank) != ranks_elsewhere_.end();
  if (!can_be_driven() || announced_ || from_elsewhere) return;
  announced_ = true;
  try {
    AbortMessage& said = memory_->said;
    said.rank = record.rank;
    std::memcpy(said.text.data(), record.text.data(),
                std::min(record.text.size(), said.text.size() - 1));
    saying_.reserve(ranks_elsewhere_.size());
    for (const int rank : ranks_elsewhere_) {
      check_mpi(MPI_Isend(&said, sizeof(AbortMessage), MPI_BYTE, rank, kAbortTag, comm_,
                          &saying_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Isend");
    }
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    int all = 0;
    while (all == 0 && std::chrono::steady_clock::now() < give_up) {
      check_mpi(
          MPI_Testall(static_cast<int>(saying_.size()), saying_.data(), &all, MPI_STATUSES_IGNORE),
          "announcing an abort");
    }
  } catch (const std::exception& error) {
    log(LogLevel::warning, "could not tell other hosts of an abort: {}", error.what());
  }
}

}  // namespace rondo::detail

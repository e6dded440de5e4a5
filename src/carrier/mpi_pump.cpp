// The pump's slots, its start and its end; mpi_pump_notices.cpp has what ranks tell each other beside slots.
#include "carrier/mpi_pump.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/check_mpi.hpp"
#include "base/log.hpp"

namespace rondo::detail {
namespace {

constexpr std::uint64_t kMostMessagesAhead = 1024;
constexpr std::uint64_t kRoundsPerLook = 64;

}  // namespace

MpiPump::MpiPump(MPI_Comm comm, PumpEdges edges)
    : comm_(comm),
      ranks_elsewhere_(std::move(edges.ranks_elsewhere)),
      board_(edges.board),
      session_(edges.session) {
  check_mpi(MPI_Query_thread(&thread_level_), "MPI_Query_thread");
  memory_->fifos = std::move(edges.fifos);
  for (const PumpEdges::Out& edge : edges.out) {
    outgoing_.push_back({edge.peer, edge.algorithms, kFirstSlotTag + edge.channel, edge.published,
                         RequestRing(edge.published.geometry().slots),
                         RunAhead(edge.published.geometry())});
  }
  for (const PumpEdges::In& edge : edges.in) {
    incoming_.push_back({edge.peer, edge.algorithms, kFirstSlotTag + edge.channel, edge.free,
                         RequestRing(edge.free.geometry().slots)});
  }
  check_mpi(MPI_Irecv(&memory_->heard, sizeof(AbortMessage), MPI_BYTE, MPI_ANY_SOURCE, kAbortTag,
                      comm_, &hearing_),
            "MPI_Irecv");
  check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  int size = 0;
  check_mpi(MPI_Comm_size(comm_, &size), "MPI_Comm_size");
  told_calls_.resize(static_cast<std::size_t>(size));
  listen_for_calls();
  confirmed_calls_.resize(static_cast<std::size_t>(size));
  expected_calls_.resize(static_cast<std::size_t>(size));
  listen_for_confirmations();
}

MpiPump::~MpiPump() {
  if (!can_be_driven()) {
    log(LogLevel::warning, "a communicator with MPI edges outlived MPI_Finalize");
  } else if (!board_->raised() && end_operations()) {
    MPI_Comm_free(&comm_);
    return;
  }
  // MPI operations may still be under way, here or at a peer that has not noticed the failure yet: neither the
  // memory nor the MPI communicator's number may be used again.
  static_cast<void>(memory_.release());
}

// A confirmation that came after MPI_Comm_free could be taken by a new communicator with the same number.
bool MpiPump::hear_what_is_expected() {
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

std::vector<MPI_Request> MpiPump::open_requests() {
  std::vector<MPI_Request> open;
  const auto take = [&](RequestRing& requests, bool cancel) {
    for (; requests.outstanding() > 0; requests.finish_oldest()) {
      if (cancel) MPI_Cancel(&requests.oldest());
      open.push_back(requests.oldest());
    }
  };
  for (Outgoing& edge : outgoing_) take(edge.requests, false);
  for (Incoming& edge : incoming_) take(edge.requests, true);
  for (MPI_Request* hearing : {&hearing_, &hearing_call_, &hearing_confirmation_}) {
    if (*hearing == MPI_REQUEST_NULL) continue;
    MPI_Cancel(hearing);
    open.push_back(*hearing);
  }
  if (saying_call_ != MPI_REQUEST_NULL) open.push_back(saying_call_);
  for (const Telling& telling : memory_->tellings) {
    open.insert(open.end(), telling.requests.begin(), telling.requests.end());
  }
  open.insert(open.end(), saying_.begin(), saying_.end());
  return open;
}

bool MpiPump::end_operations() {
  try {
    if (!hear_what_is_expected()) return false;
    // Several ranks may have sent this one a CallMessage; each of these synchronous sends ends only when received.
    for (std::size_t rank = 0; rank < told_calls_.size(); ++rank) look_for_calls();
  } catch (const TransportError&) {
    return false;
  }
  std::vector<MPI_Request> open = open_requests();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  int all = 0;
  do {
    if (MPI_Testall(static_cast<int>(open.size()), open.data(), &all, MPI_STATUSES_IGNORE) !=
        MPI_SUCCESS) {
      return false;
    }
  } while (all == 0 && std::chrono::steady_clock::now() < give_up);
  return all != 0;
}

void MpiPump::begin_call(Algorithm algorithm) {
  algorithm_ = algorithm;
  drives_all_ = false;
}

bool MpiPump::RunAhead::must_wait_after(std::uint64_t bytes) {
  bytes_ += bytes;
  ++messages_;
  if (bytes_ < most_bytes_ && messages_ < kMostMessagesAhead) return false;
  bytes_ = 0;
  messages_ = 0;
  return true;
}

bool MpiPump::start_sends(Outgoing& edge) {
  bool started = false;
  const std::uint64_t published = edge.end.published_slots();
  while (edge.requests.outstanding() < published) {
    const SlotHeader* slot = edge.end.slot(edge.requests.outstanding());
    const auto bytes = static_cast<int>(sizeof(SlotHeader) + slot->bytes);  // at most a slot: 1 GiB
    const bool synchronous = edge.run_ahead.must_wait_after(slot->bytes);
    MPI_Request& request = edge.requests.start();
    check_mpi(synchronous ? MPI_Issend(slot, bytes, MPI_BYTE, edge.peer, edge.tag, comm_, &request)
                          : MPI_Isend(slot, bytes, MPI_BYTE, edge.peer, edge.tag, comm_, &request),
              "MPI_Isend", edge.peer);
    started = true;
  }
  return started;
}

bool MpiPump::start_receives(Incoming& edge) {
  bool started = false;
  const auto bytes = static_cast<int>(sizeof(SlotHeader) + edge.end.geometry().slot_bytes);
  const std::uint64_t free_slots = edge.end.free_slots();
  while (edge.requests.outstanding() < free_slots) {
    SlotHeader* slot = edge.end.slot(edge.requests.outstanding());
    check_mpi(MPI_Irecv(slot, bytes, MPI_BYTE, edge.peer, edge.tag, comm_, &edge.requests.start()),
              "MPI_Irecv", edge.peer);
    started = true;
  }
  return started;
}

// One MPI call tests all requests, since each such call polls the network.
bool MpiPump::finish_oldest(Direction direction) {
  oldest_.clear();
  finishers_.clear();
  for (Outgoing& edge : outgoing_) {
    if (!drives(edge.algorithms) || edge.requests.outstanding() == 0) continue;
    oldest_.push_back(edge.requests.oldest());
    finishers_.push_back({&edge, nullptr});
  }
  if (direction == Direction::both) {
    for (Incoming& edge : incoming_) {
      if (!drives(edge.algorithms) || edge.requests.outstanding() == 0) continue;
      oldest_.push_back(edge.requests.oldest());
      finishers_.push_back({nullptr, &edge});
    }
  }
  if (oldest_.empty()) return false;
  int done = 0;
  ended_.resize(oldest_.size());
  statuses_.resize(oldest_.size());
  const int code = MPI_Testsome(static_cast<int>(oldest_.size()), oldest_.data(), &done,
                                ended_.data(), statuses_.data());
  check_ended(code, done);
  for (int i = 0; i < done; ++i) {
    const auto [out, in] =
        finishers_[static_cast<std::size_t>(ended_[static_cast<std::size_t>(i)])];
    if (out != nullptr) {
      out->requests.finish_oldest();
      out->end.release();
    } else {
      in->requests.finish_oldest();
      in->end.publish();
    }
  }
  return done > 0;
}

// Throws TransportError if the test of oldest_ failed. The statuses say which operation failed, if MPI sets them.
void MpiPump::check_ended(int code, int done) const {
  if (code == MPI_SUCCESS) return;
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  for (int i = 0; error_class == MPI_ERR_IN_STATUS && i < done; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const auto [out, in] = finishers_[static_cast<std::size_t>(ended_[index])];
    const int peer = out != nullptr ? out->peer : in->peer;
    check_mpi(statuses_[index].MPI_ERROR, out != nullptr ? "MPI_Isend" : "MPI_Irecv", peer);
  }
  check_mpi(code, "MPI_Testsome");
}

bool MpiPump::progress() {
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

std::unique_ptr<Pump> MpiPump::another(PumpEdges edges) {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(comm_, &comm), "MPI_Comm_dup");
  edges.session = session_ + ++pumps_made_;
  return std::make_unique<MpiPump>(comm, std::move(edges));
}

std::unique_ptr<Pump> MpiPump::among(const std::vector<int>& ranks, PumpEdges edges) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  // Fail only for arguments that are wrong on all ranks.
  MPI_Comm_group(comm_, &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  // Other groups of the same ranks may do the same at the same time. MPI waits here without a deadline, but all ranks of
  // the group have agreed to come (joining/wire_processes.cpp): only a process that ends just now keeps the others.
  const int code = MPI_Comm_create_group(comm_, some, kGroupTag, &comm);
  if (some != MPI_GROUP_NULL) MPI_Group_free(&some);
  if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
  check_mpi(code, "MPI_Comm_create_group");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return std::make_unique<MpiPump>(comm, std::move(edges));
}

bool MpiPump::can_be_driven() const {
  int gone = 0;
  MPI_Finalized(&gone);
  return gone == 0;
}

std::optional<int> MpiPump::busy_peer() {
  for (Outgoing& edge : outgoing_) {
    if (drives(edge.algorithms)) start_sends(edge);
  }
  // Receives are always open; testing them too would poll the network at the end of every call.
  finish_oldest(Direction::out);
  for (const Outgoing& edge : outgoing_) {
    if (drives(edge.algorithms) && edge.requests.outstanding() > 0) return edge.peer;
  }
  return std::nullopt;
}

std::string MpiPump::objection_to_this_thread() const {
  if (thread_level_ >= MPI_THREAD_SERIALIZED) return {};
  int main = 0;
  check_mpi(MPI_Is_thread_main(&main), "MPI_Is_thread_main");
  if (main != 0) return {};
  return "a call with MPI edges was made from a thread other than MPI's main thread, and MPI was "
         "initialised with less than MPI_THREAD_SERIALIZED; call from the main thread, or ask "
         "MPI_Init_thread for MPI_THREAD_SERIALIZED";
}

std::string MpiPump::objection_to_progress_thread() const {
  if (thread_level_ >= MPI_THREAD_MULTIPLE) return {};
  return "an asynchronous call with MPI edges uses MPI on Rondo's progress thread, which needs "
         "MPI_THREAD_MULTIPLE; ask MPI_Init_thread for it, or make blocking calls";
}

}  // namespace rondo::detail

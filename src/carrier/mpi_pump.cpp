#include "carrier/mpi_pump.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/log.hpp"
#include "bootstrap/mpi_bootstrap.hpp"

namespace rondo::detail {
namespace {

constexpr int kSlotTag = 0;
constexpr int kAbortTag = 1;
constexpr std::uint64_t kRoundsPerAbortLook = 64;

bool finished(MPI_Request& request, const char* what) {
  int done = 0;
  check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
  return done != 0;
}

}  // namespace

MpiPump::MpiPump(MPI_Comm comm, PumpEdges edges)
    : comm_(comm), ranks_elsewhere_(std::move(edges.ranks_elsewhere)), board_(edges.board) {
  check_mpi(MPI_Query_thread(&thread_level_), "MPI_Query_thread");
  for (const PumpEdges::Out& edge : edges.out) {
    outgoing_.push_back({edge.peer, edge.published, RequestRing(edge.published.geometry().slots)});
  }
  for (const PumpEdges::In& edge : edges.in) {
    incoming_.push_back({edge.peer, edge.free, RequestRing(edge.free.geometry().slots)});
  }
  check_mpi(
      MPI_Irecv(&heard_, sizeof(heard_), MPI_BYTE, MPI_ANY_SOURCE, kAbortTag, comm_, &hearing_),
      "MPI_Irecv");
  for (Incoming& edge : incoming_) receive(edge);
}

MpiPump::~MpiPump() {
  int gone = 0;
  MPI_Finalized(&gone);
  if (gone != 0) {
    log(LogLevel::warning, "a communicator with MPI edges outlived MPI_Finalize");
    return;
  }
  const auto cancel = [](MPI_Request& request) {
    if (request == MPI_REQUEST_NULL) return;
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  };
  cancel(hearing_);
  for (Incoming& edge : incoming_) {
    for (; edge.requests.outstanding() > 0; edge.requests.finish_oldest()) {
      cancel(edge.requests.oldest());
    }
  }
  bool sends_left = false;
  for (const Outgoing& edge : outgoing_) sends_left |= edge.requests.outstanding() > 0;
  for (const MPI_Request& request : saying_) sends_left |= request != MPI_REQUEST_NULL;
  // After a failure a send may never end, and MPI may still read its buffer and use the
  // communicator.
  if (sends_left) {
    static_cast<void>(said_.release());
  } else {
    MPI_Comm_free(&comm_);
  }
}

void MpiPump::send(Outgoing& edge) {
  const std::uint64_t published = edge.end.published_slots();
  while (edge.requests.outstanding() < published) {
    const SlotHeader* slot = edge.end.slot(edge.requests.outstanding());
    const std::uint64_t synchronous_every =
        std::max<std::uint32_t>(1, edge.end.geometry().slots / 2);
    const bool synchronous = (edge.requests.started() + 1) % synchronous_every == 0;
    const auto bytes = static_cast<int>(sizeof(SlotHeader) + slot->bytes);  // at most a slot: 1 GiB
    MPI_Request& request = edge.requests.start();
    check_mpi(synchronous ? MPI_Issend(slot, bytes, MPI_BYTE, edge.peer, kSlotTag, comm_, &request)
                          : MPI_Isend(slot, bytes, MPI_BYTE, edge.peer, kSlotTag, comm_, &request),
              "MPI_Isend");
  }
  while (edge.requests.outstanding() > 0 && finished(edge.requests.oldest(), "sending a slot")) {
    edge.requests.finish_oldest();
    edge.end.release();
  }
}

void MpiPump::receive(Incoming& edge) {
  const auto bytes = static_cast<int>(sizeof(SlotHeader) + edge.end.geometry().slot_bytes);
  const std::uint64_t free_slots = edge.end.free_slots();
  while (edge.requests.outstanding() < free_slots) {
    SlotHeader* slot = edge.end.slot(edge.requests.outstanding());
    check_mpi(MPI_Irecv(slot, bytes, MPI_BYTE, edge.peer, kSlotTag, comm_, &edge.requests.start()),
              "MPI_Irecv");
  }
  while (edge.requests.outstanding() > 0 && finished(edge.requests.oldest(), "receiving a slot")) {
    edge.requests.finish_oldest();
    edge.end.publish();
  }
}

void MpiPump::progress() {
  for (Outgoing& edge : outgoing_) send(edge);
  for (Incoming& edge : incoming_) receive(edge);
  if (++rounds_ % kRoundsPerAbortLook == 0) look_for_abort();
}

void MpiPump::look_for_abort() {
  if (hearing_ == MPI_REQUEST_NULL || !finished(hearing_, "listening for an abort")) return;
  heard_one_ = true;
  heard_.text.back() = '\0';
  board_->raise(heard_.rank, heard_.text.data());
}

bool MpiPump::drained() {
  for (Outgoing& edge : outgoing_) {
    send(edge);
    if (edge.requests.outstanding() > 0) return false;
  }
  return true;
}

void MpiPump::announce_abort(const AbortRecord& record) noexcept {
  int gone = 0;
  MPI_Finalized(&gone);
  // What came from another host was told to all ranks there.
  if (gone != 0 || said_ != nullptr || heard_one_) return;
  try {
    said_ = std::make_unique<AbortMessage>();
    said_->rank = record.rank;
    std::memcpy(said_->text.data(), record.text.data(),
                std::min(record.text.size(), said_->text.size() - 1));
    for (const int rank : ranks_elsewhere_) {
      check_mpi(MPI_Isend(said_.get(), sizeof(AbortMessage), MPI_BYTE, rank, kAbortTag, comm_,
                          &saying_.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Isend");
    }
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (std::chrono::steady_clock::now() < give_up) {
      bool all = true;
      for (MPI_Request& request : saying_) {
        all &= request == MPI_REQUEST_NULL || finished(request, "announcing an abort");
      }
      if (all) return;
    }
  } catch (const std::exception& error) {
    log(LogLevel::warning, "could not tell other hosts of an abort: {}", error.what());
  }
}

void MpiPump::require_this_thread() const {
  if (thread_level_ >= MPI_THREAD_SERIALIZED) return;
  int main = 0;
  check_mpi(MPI_Is_thread_main(&main), "MPI_Is_thread_main");
  if (main != 0) return;
  throw UsageError(
      "a call with MPI edges was made from a thread other than MPI's main thread, and MPI was "
      "initialised with less than MPI_THREAD_SERIALIZED; call from the main thread, or ask "
      "MPI_Init_thread for MPI_THREAD_SERIALIZED");
}

void MpiPump::require_progress_thread() const {
  if (thread_level_ >= MPI_THREAD_MULTIPLE) return;
  throw UsageError(
      "an asynchronous call with MPI edges uses MPI on Rondo's progress thread, which needs "
      "MPI_THREAD_MULTIPLE; ask MPI_Init_thread for it, or make blocking calls");
}

}  // namespace rondo::detail

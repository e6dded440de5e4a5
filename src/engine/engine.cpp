#include "engine/engine.hpp"

#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/log.hpp"
#include "engine/call_text.hpp"
#include "engine/one_shot.hpp"

namespace rondo::detail {

Engine::Engine(Wiring wiring)
    : wiring_(std::move(wiring)),
      board_(wiring_.links.segment->board()),
      waiter_(wiring_),
      confirmation_(wiring_),
      place_{wiring_.rank, wiring_.size, &wiring_.topology.ring, wiring_.links.ring_geometry,
             wiring_.links.off_ring_geometry} {}

Engine::~Engine() {
  try {
    if (wiring_.links.pump != nullptr) wiring_.links.pump->look_for_abort();
    if (const auto last = confirmation_.confirm_last()) tell_unconfirmed(*last);
  } catch (const std::exception& error) {
    log(LogLevel::warning, "rank {}: {}", wiring_.rank, error.what());
  }
  wiring_.links.segment->presence(wiring_.rank).leave();
  if (!board_.raised()) return;
  // Other hosts may not know that the communicator has ended. The caller does not know it either, if no call of this
  // rank has thrown it.
  const AbortRecord record = board_.read();
  if (wiring_.links.pump != nullptr) wiring_.links.pump->announce_abort(record);
  if (!told_of_the_end_ && record.rank != wiring_.rank) {
    log(LogLevel::warning,
        "rank {}: the communicator is destroyed; after this rank's last call, rank {} ended it: {}",
        wiring_.rank, record.rank, record.text);
  }
}

// Called by the destructor, which cannot throw: the caller can be told by the log only.
void Engine::tell_unconfirmed(const Confirmation::Unconfirmed& last) {
  const int peer = last.failure.peer;
  const std::string call = describe(last.call);
  if (last.failure.result == WaitResult::timed_out) {
    log(LogLevel::warning,
        "rank {}: the communicator is destroyed, and it is not known whether all ranks made {}: "
        "rank {} has not confirmed it within the call's timeout",
        wiring_.rank, call, peer);
    return;
  }
  raise(text_of_missing(last.call, last.failure, "this rank's own part is over"));
}

// `so_far`: how far this rank came.
std::string Engine::text_of_missing(const Signature& signature, const Failure& failure,
                                    const std::string& so_far) const {
  const int peer = failure.peer;
  if (failure.result == WaitResult::peer_ended) {
    return fmt::format(
        "rank {}: rank {} (process {}) ended during {}; {}. Look at that process's own output for "
        "the reason",
        wiring_.rank, peer, wiring_.topology.places[static_cast<std::size_t>(peer)].process_id,
        describe(signature), so_far);
  }
  return fmt::format(
      "rank {}: rank {} has destroyed its communicator and will not make {}; {}. Make the same "
      "calls in the same order on all ranks",
      wiring_.rank, peer, describe(signature), so_far);
}

void Engine::run(const Call& call, Algorithm algorithm, std::chrono::milliseconds timeout) {
  Signature signature = signature_of(call, algorithm);
  signature.sequence = sequence_++;
  throw_if_ended(signature);
  wiring_.links.segment->presence(wiring_.rank).enter(signature);
  waiter_.begin_call(signature, timeout, call.options.background);
  try {
    run_checked(call, algorithm, signature);
    wiring_.links.segment->presence(wiring_.rank).end(signature.sequence);
  } catch (const TransportError& error) {
    const std::string text =
        fmt::format("rank {}: {}: {}", wiring_.rank, describe(signature), error.what());
    raise(text);
    throw TransportError(text);
  } catch (const Error&) {
    throw;  // the abort board was raised where the error was found
  } catch (const std::exception& error) {
    raise(fmt::format("rank {}: {}: {}", wiring_.rank, describe(signature), error.what()));
    throw;
  }
}

void Engine::run_checked(const Call& call, Algorithm algorithm, const Signature& signature) {
  HostCall host_call{signature, {}, size_of(call.type), vector_kernel(call.type, call.op)};
  if (algorithm == Algorithm::one_shot && wiring_.size > 1) {
    run_by_one_shot(call, host_call);
    confirmation_.forget();
  } else {
    run_by_schedule(call, algorithm, host_call);
  }
}

void Engine::run_by_one_shot(const Call& call, HostCall& host_call) {
  OneShot one_shot(wiring_, waiter_, call, host_call, ++one_shots_);
  if (!one_shot.run()) fail(host_call.signature, one_shot.failure(), one_shot.progress());
}

void Engine::run_by_schedule(const Call& call, Algorithm algorithm, HostCall& host_call) {
  const Plan plan = make_plan(call, algorithm, place_, kChunkGranuleBytes);
  // `in` is only ever read.
  host_call.buffers = {{static_cast<std::byte*>(const_cast<void*>(call.in)), plan.in_origin},
                       {static_cast<std::byte*>(call.out), plan.out_origin}};
  host_call.chunks_are_ranks = plan.chunks_are_ranks;
  host_call.non_temporal = stores_non_temporally(call);
  std::vector<std::byte> scratch;
  if (plan.schedule.needs_scratch()) {
    scratch.resize(call.count * host_call.element_bytes);
    host_call.buffers.out = {scratch.data(), 0};
  }

  HostPort port(wiring_, waiter_, host_call);
  if (wiring_.links.pump != nullptr) wiring_.links.pump->begin_call(algorithm);
  if (!run_schedule(plan.schedule, plan.slicing, port)) {
    fail(host_call.signature, port.failure(), port.progress());
  }
  if (wiring_.links.pump != nullptr) drain(host_call.signature, port.progress());
  if (const auto before =
          confirmation_.confirm_before(plan.schedule, host_call.signature, waiter_)) {
    fail(host_call.signature, before->failure, port.progress(), &before->call);
  }
  if (plan.schedule.needs_scratch() && call.collective == Collective::reduce_scatter &&
      plan.own.count > 0) {
    // Only the ring's first position needs scratch memory: rank 0, whose chunk begins at 0.
    std::memcpy(call.out, scratch.data(), plan.own.count * host_call.element_bytes);
  }
}

// Whether the output is larger than what a core's cache keeps, and not already in the cache: in a call in place its
// cache lines have just been read as input.
bool Engine::stores_non_temporally(const Call& call) const {
  return call.in != call.out &&
         call.count * size_of(call.type) >= wiring_.offers.non_temporal_bytes;
}

// What was published must be on its way before this thread stops driving the pump.
void Engine::drain(const Signature& signature, const Progress& progress) {
  while (const std::optional<int> peer = wiring_.links.pump->busy_peer()) {
    const WaitResult result =
        waiter_.wait(*peer, [&] { return wiring_.links.pump->busy_peer() != peer; });
    if (result != WaitResult::ready) fail(signature, waiter_.why(result, *peer), progress);
  }
}

void Engine::fail(const Signature& signature, const Failure& failure, const Progress& progress,
                  const Signature* unconfirmed) {
  const int peer = failure.peer;
  std::string so_far = describe(progress);
  if (unconfirmed != nullptr) {
    so_far += fmt::format(
        "; rank {} is through with its own part, but does not know whether all ranks made {}",
        wiring_.rank, describe(*unconfirmed));
  }
  if (failure.other_call) {
    const std::string text = text_of_mismatch(wiring_.rank, signature, peer, *failure.other_call);
    raise(text);
    throw MismatchError(text);
  }
  if (failure.result == WaitResult::peer_ended || failure.result == WaitResult::peer_left) {
    const std::string text = text_of_missing(signature, failure, so_far);
    raise(text);
    throw PeerError(text);
  }
  if (failure.result == WaitResult::timed_out) {
    const std::string text =
        text_of_timeout(fmt::format("rank {}", wiring_.rank), peer, signature, so_far,
                        who_is_missing(signature) + wiring_.waiting.unwatched);
    raise(text);
    throw TimeoutError(text);
  }
  throw_if_ended(signature);
  throw Error(
      fmt::format("rank {}: {} stopped without a reason", wiring_.rank, describe(signature)));
}

std::string Engine::who_is_missing(const Signature& signature) const {
  std::string missing;
  for (const int rank : wiring_.links.ranks_sharing) {
    if (wiring_.links.segment->presence(rank).has_entered(signature.sequence)) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  const std::string where =
      wiring_.links.ranks_sharing.size() < static_cast<std::size_t>(wiring_.size) ? " of this host"
                                                                                  : "";
  if (missing.empty()) return fmt::format("All ranks{} have made that call.", where);
  return fmt::format("Ranks{} that have not made that call: {}.", where, missing);
}

void Engine::raise(const std::string& text) noexcept {
  told_of_the_end_ = true;
  board_.raise(wiring_.rank, text);
  if (wiring_.links.pump != nullptr) wiring_.links.pump->announce_abort({wiring_.rank, text});
  log(LogLevel::warning, "{}", text);
}

void Engine::throw_if_ended(const Signature& signature) {
  if (!board_.raised()) return;
  told_of_the_end_ = true;
  const AbortRecord record = board_.read();
  // The rank that raised the board may be in no call, and so may not have told other hosts: every rank that finds
  // the board raised tells them.
  if (wiring_.links.pump != nullptr) wiring_.links.pump->announce_abort(record);
  throw PeerError(fmt::format("rank {}: {} cannot go on, rank {} has ended the communicator: {}",
                              wiring_.rank, describe(signature), record.rank, record.text));
}

std::string Engine::objection_to_this_thread() const {
  return has_pump() ? wiring_.links.pump->objection_to_this_thread() : std::string();
}

std::string Engine::objection_to_progress_thread() const {
  return has_pump() ? wiring_.links.pump->objection_to_progress_thread() : std::string();
}

std::unique_ptr<Pump> Engine::another_pump(PumpEdges edges) {
  edges.board = &board_;
  return wiring_.links.pump->another(std::move(edges));
}

void Engine::abort(const std::string& reason) noexcept { board_.raise(wiring_.rank, reason); }

}  // namespace rondo::detail

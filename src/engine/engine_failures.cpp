// The engine's failures: from what a wait or a call has met to an error, and to what the other ranks are told.
#include <chrono>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/collective_traits.hpp"
#include "base/log.hpp"
#include "carrier/messenger.hpp"
#include "engine/call_text.hpp"
#include "engine/engine.hpp"

namespace rondo::detail {

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
  if (failure.result == WaitResult::host_vanished) {
    return fmt::format(
        "rank {}: the host of rank {} ({}) does not answer any more, noticed in {}; {}. Are that "
        "host, this host's network and the network between them up?",
        wiring_.rank, peer, wiring_.topology.places[static_cast<std::size_t>(peer)].host,
        describe(signature), so_far);
  }
  return fmt::format(
      "rank {}: rank {} has destroyed its communicator and will not make {}; {}. Make the same "
      "calls in the same order on all ranks",
      wiring_.rank, peer, describe(signature), so_far);
}

void Engine::end_with_thrown(const Signature& signature, const BufferLocations& buffers) {
  touching_.renounce();
  const std::exception_ptr error = raise_thrown(signature);
  // Raised already, unless there was no memory for the error's text.
  board_.raise(wiring_.rank, "a call failed, and there was no memory to say why");
  // The caller may free its buffers now.
  if (reachable(buffers)) touching_.withdraw();
  std::rethrow_exception(error);
}

std::exception_ptr Engine::raise_thrown(const Signature& signature) noexcept {
  try {
    try {
      throw;
    } catch (const ConnectionLost& lost) {
      const Failure failure = who_is_gone().value_or(Failure{WaitResult::peer_ended, lost.peer()});
      const std::string text = text_of_missing(signature, failure, lost.what());
      raise(text);
      throw PeerError(text);
    } catch (const TransportError& error) {
      const std::string text =
          fmt::format("rank {}: {}: {}", wiring_.rank, describe(signature), error.what());
      raise(text);
      throw TransportError(text);
    } catch (const Error&) {
      throw;  // raised where it was found
    } catch (const std::exception& error) {
      raise(fmt::format("rank {}: {}: {}", wiring_.rank, describe(signature), error.what()));
      throw;
    }
  } catch (...) {
    return std::current_exception();
  }
}

// A lost connection is noticed at the same time as the end of the process that had it, by another connection, and maybe by another
// process, which passes that on.
std::optional<Failure> Engine::who_is_gone() const {
  constexpr std::chrono::milliseconds kForTheWord{300};
  const auto give_up = Clock::now() + kForTheWord;
  if (wiring_.waiting.hosts == nullptr) return std::nullopt;
  for (;;) {
    if (const auto failure = find_gone_rank(wiring_)) return failure;
    if (Clock::now() > give_up) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void Engine::throw_unreachable(const Signature& signature) const {
  const std::optional<int> rank = direct_.unreachable_rank();
  throw UsageError(fmt::format(
      "rank {}: {}: direct needs buffers that all ranks can reach, and those of {} are not; use "
      "memory of Communicator::allocate on all ranks, or let Rondo choose the algorithm",
      wiring_.rank, describe(signature),
      rank ? fmt::format("rank {}", *rank) : std::string("another rank")));
}

void Engine::fail(const Signature& signature, const Failure& failure, const std::string& so_far) {
  touching_.renounce();  // before the time that it takes to tell other hosts
  const int peer = failure.peer;
  if (failure.other_call) {
    const std::string text = text_of_mismatch(wiring_.rank, signature, peer, *failure.other_call);
    raise(text);
    throw MismatchError(text);
  }
  if (failure.result == WaitResult::peer_ended || failure.result == WaitResult::peer_left ||
      failure.result == WaitResult::host_vanished) {
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
  if (is_message_signature(signature)) return kUnmatchedMessage;
  std::string missing;
  for (const int rank : wiring_.links.ranks_sharing) {
    if (wiring_.links.segment->presence(rank).has_entered(signature.sequence)) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  const std::size_t near = wiring_.links.ranks_sharing.size();
  if (near == 1) return "It is not known which other ranks have made that call.";
  const std::string where =
      near < static_cast<std::size_t>(wiring_.size) ? " that share memory with this one" : "";
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

}  // namespace rondo::detail

#include "engine/ending.hpp"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/log.hpp"
#include "engine/call_text.hpp"
#include "net/messenger.hpp"

namespace rondo::detail {

void Ending::throw_if_ended(const Signature& signature) {
  if (!wiring_.links.segment->board().raised()) return;
  told_ = true;
  const AbortRecord record = wiring_.links.segment->board().read();
  // The rank that raised the board may be in no call, and so may not have announced that to other
  // hosts: every rank that finds the board raised announces that to them.
  if (wiring_.links.pump != nullptr) wiring_.links.pump->notices().announce_abort(record);
  throw PeerError(fmt::format("rank {}: {} cannot go on, rank {} has ended the communicator: {}",
                              wiring_.rank, describe(signature), record.rank, record.text));
}

void Ending::end_with_thrown(const Signature& signature, const BufferLocations& buffers) {
  context_.touching.renounce();  // before the time that it takes to tell other hosts
  const std::exception_ptr error = raise_thrown(signature);
  // Raised already, unless there was no memory for the error's text.
  wiring_.links.segment->board().raise(wiring_.rank,
                                       "a call failed, and there was no memory to say why");
  // The caller may free its buffers now.
  if (reachable(buffers)) context_.touching.withdraw();
  std::rethrow_exception(error);
}

std::exception_ptr Ending::raise_thrown(const Signature& signature) noexcept {
  try {
    try {
      throw;
    } catch (const Failure& failure) {
      throw_failure(signature, failure);
    } catch (const ConnectionLost& lost) {
      const Failure failure = who_is_gone().value_or(Failure{Cause::peer_ended, lost.peer()});
      const std::string text = text_of_missing(wiring_, signature, failure, lost.what());
      raise(text);
      throw PeerError(text);
    } catch (const TransportError& error) {
      const std::string text =
          fmt::format("rank {}: {}: {}", wiring_.rank, describe(signature), error.what());
      raise(text);
      throw TransportError(text);
    } catch (const std::exception& error) {
      raise(fmt::format("rank {}: {}: {}", wiring_.rank, describe(signature), error.what()));
      throw;
    } catch (...) {  // by a function of the program
      raise(fmt::format("rank {}: {}: what was thrown is no std::exception", wiring_.rank,
                        describe(signature)));
      throw;
    }
  } catch (...) {
    return std::current_exception();
  }
}

std::string Ending::so_far(const Failure& failure) const {
  std::string text = describe(context_.progress);
  if (failure.unconfirmed) {
    text += fmt::format(
        "; rank {} is through with its own part, but does not know whether all ranks made {}",
        wiring_.rank, describe(*failure.unconfirmed));
  }
  return text;
}

template <class E>
void Ending::raise_and_throw(const std::string& text) {
  raise(text);
  throw E(text);
}

void Ending::throw_failure(const Signature& signature, const Failure& failure) {
  switch (failure.cause) {
    case Cause::other_call:
      raise_and_throw<MismatchError>(
          text_of_mismatch(wiring_.rank, signature, failure.peer, *failure.other_call));
    case Cause::timed_out:
      raise_and_throw<TimeoutError>(text_of_timeout(
          fmt::format("rank {}", wiring_.rank), failure.peer, signature, so_far(failure),
          who_is_missing(wiring_, signature) + wiring_.waiting.unwatched));
    case Cause::peer_ended:
    case Cause::peer_left:
    case Cause::host_vanished:
      raise_and_throw<PeerError>(text_of_missing(wiring_, signature, failure, so_far(failure)));
    case Cause::aborted:
      break;
  }
  throw_if_ended(signature);
  throw Error(
      fmt::format("rank {}: {} stopped without a reason", wiring_.rank, describe(signature)));
}

// A lost connection is noticed at the same time as the end of the process that had it, by another
// connection, and maybe by another process, which passes that on.
std::optional<Failure> Ending::who_is_gone() const {
  constexpr std::chrono::milliseconds kForTheWord{300};
  const auto give_up = Clock::now() + kForTheWord;
  if (wiring_.waiting.hosts == nullptr) return std::nullopt;
  for (;;) {
    if (const auto failure = find_gone_rank(wiring_)) return failure;
    if (Clock::now() > give_up) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void Ending::raise(const std::string& text) noexcept {
  told_ = true;
  wiring_.links.segment->board().raise(wiring_.rank, text);
  if (wiring_.links.pump != nullptr)
    wiring_.links.pump->notices().announce_abort({wiring_.rank, text});
  log(LogLevel::warning, "{}", text);
}

// Only the log can report this to the caller.
void Ending::confirm_last() {
  try {
    context_.confirmation.confirm_last();
  } catch (const Failure& failure) {
    const Signature& last = *failure.unconfirmed;
    if (failure.cause != Cause::timed_out) {
      raise(text_of_missing(wiring_, last, failure, "this rank's own part is over"));
      return;
    }
    log(LogLevel::warning,
        "rank {}: the communicator is destroyed, and it is not known whether all ranks made {}: "
        "rank {} has not confirmed it within the call's timeout",
        wiring_.rank, describe(last), failure.peer);
  }
}

void Ending::leave() noexcept {
  Pump* pump = wiring_.links.pump.get();
  AbortBoard& board = wiring_.links.segment->board();
  try {
    if (pump != nullptr) pump->notices().look_for_abort();
    confirm_last();
  } catch (const std::exception& error) {
    log(LogLevel::warning, "rank {}: {}", wiring_.rank, error.what());
  }
  context_.presence(wiring_.rank).leave();
  if (!board.raised()) return;
  // Other hosts may not know that the communicator has ended. The caller does not know it either,
  // if no call of this rank has thrown it.
  const AbortRecord record = board.read();
  if (pump != nullptr) pump->notices().announce_abort(record);
  if (!told_ && record.rank != wiring_.rank) {
    log(LogLevel::warning,
        "rank {}: the communicator is destroyed; after this rank's last call, rank {} ended it: {}",
        wiring_.rank, record.rank, record.text);
  }
}

}  // namespace rondo::detail

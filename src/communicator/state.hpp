// What a Communicator owns together with the reducers that were made with it.
#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <rondo/communicator.hpp>

#include "base/owner_process.hpp"
#include "communicator/call_queue.hpp"
#include "communicator/exclusive_use.hpp"
#include "engine/engine.hpp"
#include "plan/tuning.hpp"

namespace rondo::detail {

// Options after the environment has filled what the caller left open.
struct Defaults {
  std::chrono::milliseconds timeout = std::chrono::seconds(300);
  Algorithm algorithm = Algorithm::automatic;
  Tuning tuning;  // rank 0's, on all ranks; resolve_defaults does not set it
};

// Throws UsageError for values out of range.
Defaults resolve_defaults(const CommunicatorOptions& options);

struct CommunicatorState {
  CommunicatorState(Wiring made, const Defaults& with, const CommunicatorOptions& given)
      : wiring(std::move(made)),
        engine(wiring),
        defaults(with),
        options(given),
        tuned(defaults.tuning, wiring.size, cost_between_hosts(wiring)) {}
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;

  // Throws UsageError if a reducer has the communicator to itself. One that has ended says why,
  // whoever has it.
  void refuse_if_held(std::string_view call, const void* user) {
    if (!exclusive_use.forbids(user) || wiring.links.segment->board().raised()) return;
    exclusive_use.refuse_if_forbidden(call, wiring.rank, user);
  }

  // Memory for so many bytes, in which a call packs buffers; until the next call that does so.
  // Where there is none, ends the communicator, and throws TransportError.
  std::byte* packed_elements(std::size_t bytes);

  // To be called as the program's communicator, or the last owner, is destroyed.
  void abort_if_unwinding() {
    if (std::uncaught_exceptions() > exceptions_at_start) {
      engine.abort("an exception ended the scope that owned this rank's communicator");
    }
  }

  OwnerProcess owner_process;
  Wiring wiring;
  Engine engine;  // borrows the wiring
  Defaults defaults;
  CommunicatorOptions options;  // for communicators that are split off
  Tuned tuned;
  ExclusiveUse exclusive_use;
  RegisteredMemory<std::uint8_t> packed;  // what packed_elements() returns a part of
  int exceptions_at_start = std::uncaught_exceptions();
  CallQueue queue;  // last, so that what is queued ends before the engine does
};

// The state of a communicator, for the parts of the library that build upon it.
CommunicatorState& state_of(const Communicator& communicator);

// Another holder of the same state, for the calls of `user`. It goes on when the program moves or
// destroys its own.
Communicator share(Communicator& communicator, const void* user);

// Why blocking calls may not be made from this thread; empty if they may.
std::string objection_to_calls_here(const Communicator& communicator);

// Whether the other ranks can reach this rank's buffers in `call`.
bool shows_buffers(const Communicator& communicator, const Call& call);

}  // namespace rondo::detail

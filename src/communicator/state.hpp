// What a Communicator owns.
#pragma once

#include <chrono>

#include "communicator/call_queue.hpp"
#include "engine/engine.hpp"

namespace rondo::detail {

// Options after the environment has filled what the caller left open.
struct Defaults {
  std::chrono::milliseconds timeout{};
  Algorithm algorithm = Algorithm::automatic;
};

// Throws UsageError for values out of range.
Defaults resolve_defaults(const CommunicatorOptions& options);

struct CommunicatorState {
  CommunicatorState(Wiring wiring, const Defaults& with)
      : engine(std::move(wiring)), defaults(with) {}

  Engine engine;
  Defaults defaults;
  CallQueue queue;  // last, so that what is queued ends before the engine does
};

}  // namespace rondo::detail

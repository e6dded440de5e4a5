// Carries out calls on the host: takes each to what its algorithm needs, and turns a failure into
// an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <rondo/call.hpp>

#include "engine/context.hpp"
#include "engine/direct.hpp"
#include "engine/ending.hpp"
#include "engine/hierarchical.hpp"
#include "engine/messages.hpp"
#include "engine/one_shot.hpp"
#include "engine/wiring.hpp"
#include "plan/plan_call.hpp"

namespace rondo::detail {

class Engine {
 public:
  // Borrows the wiring, which outlives it.
  explicit Engine(Wiring& wiring);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // Blocks until the call is done; one thread at a time. Throws an Error; or what a failed
  // allocation throws.
  void run(const PlannedCall& planned);

  // Any thread may call.
  void abort(const std::string& reason) noexcept;

 private:
  // A collective begins: from now on the other ranks of the host see it. Throws PeerError if the
  // communicator has ended.
  // `use`: held while the others may use what this rank has shown of the arena.
  ShownCall enter(const PlannedCall& planned, Arena::Use& use);
  // Carries out the call by `direct` if the plan allows that. Returns the algorithm that is still
  // to be run; none if `direct` has done the call. Throws UsageError if not all ranks' buffers can
  // be reached and the plan has no fallback.
  std::optional<Algorithm> try_direct(const PlannedCall& planned, const ShownCall& shown);

  Wiring& wiring_;
  Context context_;
  Ending ending_;
  Messages messages_;
  Direct direct_;
  OneShot one_shot_;
  Hierarchical hierarchical_;
  std::uint64_t sequence_ = 0;
};

}  // namespace rondo::detail

// From a call of the program to one that the engine can carry out, or to its place in the queue.
#pragma once

#include <functional>

#include <rondo/call.hpp>
#include <rondo/work.hpp>

#include "communicator/state.hpp"
#include "plan/plan_call.hpp"

namespace rondo::detail {

// Throws UsageError for a call that cannot be made.
PlannedCall plan_on_host(const CommunicatorState& state, const Call& call);
// The same of a call whose buffers are chosen when its turn comes.
PlannedCall plan_packed(const CommunicatorState& state, const Call& call);

// To be called before a blocking call. Throws UsageError where `user` may not make it on this
// thread.
void prepare_to_run(CommunicatorState& state, const Call& call, const void* user);

// Queues a call, which `run` carries out on the progress thread. Throws UsageError where `user` may
// not make it, and TransportError, which ends the communicator, if that thread cannot be started.
Work enqueue(CommunicatorState& state, const Call& call, const void* user,
             std::function<void()> run);

}  // namespace rondo::detail

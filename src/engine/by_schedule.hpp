// Calls by a schedule: along the edges of the ring, off-ring edges or pairwise edges.
#pragma once

#include <rondo/call.hpp>

#include "engine/context.hpp"
#include "engine/host_port.hpp"

namespace rondo::detail {

// All that HostPort needs to carry out `call` by `plan`.
HostCall host_call_of(const Context& context, const Call& call, const Plan& plan,
                      const Signature& signature);

// Walks the steps of the call's plan, and waits until what it has sent is on its way. Throws
// Failure.
void walk(Context& context, const HostCall& call);

// The whole call: with the pairwise edges that it needs, scratch memory, and the confirmation of
// the call before it. Throws Failure, TransportError.
void run_by_schedule(Context& context, const Call& call, Algorithm algorithm,
                     const Signature& signature);

}  // namespace rondo::detail

// What a gradient reducer needs of a communicator over devices.
#pragma once

#include <rondo/cuda.hpp>

#include "communicator/exclusive_use.hpp"

namespace rondo::detail::gpu {

// Another holder of the same state, for the calls of `user`. It goes on when the program moves or
// destroys its own.
cuda::Communicator share(cuda::Communicator& communicator, const void* user);

ExclusiveUse& exclusive_use_of(cuda::Communicator& communicator);

}  // namespace rondo::detail::gpu

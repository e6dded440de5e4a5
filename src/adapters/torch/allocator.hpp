// Memory of tensors that the other ranks of the host reach.
#pragma once

namespace rondo::torch_backend {

// From now on torch allocates tensors in host memory of 64 KiB and more as reachable memory
// (rondo/reachable_memory.hpp). Smaller ones stay as they were, and so does what exists already.
void use_reachable_allocator();

}  // namespace rondo::torch_backend

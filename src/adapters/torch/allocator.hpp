// Memory of tensors that the other ranks of the host reach.
#pragma once

#include <c10/core/Allocator.h>

namespace rondo::torch_backend {

// Gives reachable memory (rondo/reachable_memory.hpp) for 64 KiB and more, else torch's own.
c10::Allocator& reachable_allocator();

// From now on torch allocates all tensors in host memory by it. What exists already stays as it
// was. Processes that the program forks then share such tensors with it: what they write, it reads.
void use_reachable_allocator();

}  // namespace rondo::torch_backend

// Memory that all ranks need for one purpose.
#pragma once

#include <cstddef>
#include <cstdint>

#include <rondo/communicator.hpp>

namespace rondo::detail {

// `bytes` bytes of reachable memory; each rank may ask for another number. Collective. Throws on
// all ranks, as RegisteredMemory does, if there is too little for one of them.
RegisteredMemory<std::uint8_t> allocate_together(Communicator& communicator, std::size_t bytes);

}  // namespace rondo::detail

// Makes memory that the ranks of a host reach.
#pragma once

#include <cstddef>
#include <memory>

#include <rondo/communicator.hpp>

#include "carrier/registry.hpp"

namespace rondo::detail {

// Collective; `count` elements may differ between ranks. Throws UsageError, TransportError, on all
// ranks.
std::shared_ptr<RegisteredBlock> register_memory(Communicator& communicator, std::size_t count,
                                                 std::size_t element_bytes);

}  // namespace rondo::detail

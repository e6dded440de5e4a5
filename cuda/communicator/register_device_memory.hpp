// Makes device memory that all ranks of a group reach.
#pragma once

#include <cstddef>
#include <memory>

#include <rondo/communicator.hpp>

#include "cuda/engine/device_engine.hpp"

namespace rondo::detail::gpu {

// Collective; `count` elements may differ between ranks. First gives back what all ranks have
// freed. Throws UsageError, CudaError, on all ranks.
std::shared_ptr<DeviceBlock> register_device_memory(rondo::Communicator& host,
                                                    const DeviceWiring& wiring,
                                                    DeviceEngine& engine, std::size_t count,
                                                    std::size_t element_bytes);

}  // namespace rondo::detail::gpu

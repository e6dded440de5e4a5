// A gradient store's memory on a device, worked on in the order of one stream.
#pragma once

#include <memory>

#include "api/api.hpp"
#include "api/operations_ahead.hpp"
#include "gradient/bucket_memory.hpp"

namespace rondo::detail::gpu {

// Borrows the stream, and what counts the stream's operations.
std::unique_ptr<BucketMemory> memory_on(int device, api::Stream stream, OperationsAhead& ahead);

}  // namespace rondo::detail::gpu

// A gradient store's memory on a device, worked on in the order of one stream.
#pragma once

#include <memory>

#include <rondo/cuda.hpp>

#include "cuda/api/api.hpp"
#include "cuda/api/operations_ahead.hpp"
#include "gradient/bucket_memory.hpp"

namespace rondo::detail::gpu {

// Registered memory of the communicator, which must outlive it. Borrows the stream, and what counts
// the stream's operations.
std::unique_ptr<BucketMemory> device_memory(cuda::Communicator& communicator, api::Stream stream,
                                            OperationsAhead& ahead);

}  // namespace rondo::detail::gpu

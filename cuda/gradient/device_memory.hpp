// A gradient store's memory on a device, worked on in the order of one stream.
#pragma once

#include <memory>

#include "api/api.hpp"
#include "gradient/bucket_memory.hpp"

namespace rondo::detail::gpu {

// The stream must outlive it.
std::unique_ptr<BucketMemory> memory_on(int device, api::Stream stream);

}  // namespace rondo::detail::gpu

// The memory of a gradient store, and the operations on it: done at once on a host, in the order of
// a stream on a device.
#pragma once

#include <cstddef>
#include <memory>

#include <rondo/communicator.hpp>
#include <rondo/types.hpp>

namespace rondo::detail {

class BucketMemory {
 public:
  using Owner = std::shared_ptr<std::byte>;

  BucketMemory() = default;
  BucketMemory(const BucketMemory&) = delete;
  BucketMemory& operator=(const BucketMemory&) = delete;
  virtual ~BucketMemory() = default;

  // Zeroed, and aligned to a cache line. Collective: on a host, where all ranks have it, no bucket
  // goes through slots.
  virtual Owner allocate(std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  // Waits until the operations asked for are done.
  virtual void settle() = 0;
  virtual void clear(void* memory, std::size_t bytes) = 0;
  // As rondo::detail::scale.
  virtual void scale(void* to, DataType to_type, const void* from, DataType from_type,
                     std::size_t count, double factor) = 0;
};

// Reachable memory; `communicator`, of the ranks that allocate together, must outlive it.
std::unique_ptr<BucketMemory> host_memory(Communicator& communicator);

}  // namespace rondo::detail

// How a rank shows device memory to the other ranks, and how they map it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/api/api.hpp"
#include "cuda/api/handles.hpp"
#include "cuda/engine/device_registry.hpp"

namespace rondo::detail::gpu {

// Fixed size: it travels as bytes.
struct ShownMemory {
  std::uint64_t in_process = 0;  // its number, for ranks of this process
  api::IpcHandle handle;         // for other processes
  std::array<char, 128> why_no_handle{};
};

// Memory of its own pages. CUDA puts small allocations side by side into one page of 2 MiB, and
// another process that opens the handle of one of them maps them all.
std::shared_ptr<DeviceMemory> allocate_to_show(int device, std::size_t bytes);

ShownMemory show(const std::shared_ptr<DeviceMemory>& memory, int device);

// Maps another rank's memory for kernels of `device`, and keeps it in `mapped`. `same_process`: as
// this rank. Throws CudaError, also if a rank of this process has released the memory meanwhile.
std::byte* map(const ShownMemory& theirs, bool same_process, int device, MappedMemory& mapped);

}  // namespace rondo::detail::gpu

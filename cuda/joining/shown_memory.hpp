// How a rank shows device memory to the other ranks, and how they map it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "api/api.hpp"
#include "api/handles.hpp"
#include "engine/device_registry.hpp"

namespace rondo::detail::gpu {

// Fixed size: it travels as bytes.
struct ShownMemory {
  const std::shared_ptr<DeviceMemory>* in_process = nullptr;
  api::IpcHandle handle;  // for other processes
  std::array<char, 128> why_no_handle{};
};

// `memory` must stay where it is until all ranks have mapped it.
ShownMemory show(const std::shared_ptr<DeviceMemory>& memory, int device);

// Maps another rank's memory for kernels of `device`, and keeps it in `mapped`. `same_process`: as this rank. Throws
// CudaError.
std::byte* map(const ShownMemory& theirs, bool same_process, int device, MappedMemory& mapped);

}  // namespace rondo::detail::gpu

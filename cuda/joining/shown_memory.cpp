#include "joining/shown_memory.hpp"

#include <rondo/errors.hpp>

#include "base/put.hpp"

namespace rondo::detail::gpu {

ShownMemory show(const std::shared_ptr<DeviceMemory>& memory, int device) {
  ShownMemory mine;
  mine.in_process = &memory;
  try {
    const DeviceScope scope(device);
    mine.handle = api::export_memory(memory->data());
  } catch (const CudaError& error) {
    put(mine.why_no_handle, error.what());
  }
  return mine;
}

std::byte* map(const ShownMemory& theirs, bool same_process, int device, MappedMemory& mapped) {
  if (same_process) {
    mapped.of_this_process.push_back(*theirs.in_process);
    return (*theirs.in_process)->data();
  }
  if (theirs.why_no_handle[0] != '\0') throw CudaError(theirs.why_no_handle.data());
  mapped.of_others.emplace_back(device, theirs.handle);
  return mapped.of_others.back().data();
}

}  // namespace rondo::detail::gpu

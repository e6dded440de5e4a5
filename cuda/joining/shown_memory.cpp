#include "cuda/joining/shown_memory.hpp"

#include <map>
#include <mutex>

#include <rondo/errors.hpp>

#include "base/put.hpp"

namespace rondo::detail::gpu {
namespace {

// What the ranks of this process have shown, by number. A number and not an address travels, since
// a rank may fail and release its memory while another is about to map it.
class ShownHere {
 public:
  std::uint64_t add(const std::shared_ptr<DeviceMemory>& memory) {
    const std::lock_guard lock(mutex_);
    std::erase_if(shown_, [](const auto& entry) { return entry.second.expired(); });
    shown_[++last_] = memory;
    return last_;
  }
  std::shared_ptr<DeviceMemory> find(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = shown_.find(number);
    return found == shown_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::weak_ptr<DeviceMemory>> shown_;
};

ShownHere& shown_here() {
  static ShownHere all;
  return all;
}

}  // namespace

std::shared_ptr<DeviceMemory> allocate_to_show(int device, std::size_t bytes) {
  constexpr std::size_t kPageBytes = std::size_t{2} << 20U;
  return std::make_shared<DeviceMemory>(device, (bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
}

ShownMemory show(const std::shared_ptr<DeviceMemory>& memory, int device) {
  ShownMemory mine;
  mine.in_process = shown_here().add(memory);
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
    std::shared_ptr<DeviceMemory> memory = shown_here().find(theirs.in_process);
    if (memory == nullptr) throw CudaError("a rank of this process has released its memory");
    return mapped.of_this_process.emplace_back(std::move(memory))->data();
  }
  if (theirs.why_no_handle[0] != '\0') throw CudaError(theirs.why_no_handle.data());
  return mapped.of_others.emplace_back(device, theirs.handle).data();
}

}  // namespace rondo::detail::gpu

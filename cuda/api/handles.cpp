#include "cuda/api/handles.hpp"

#include "base/log.hpp"

namespace rondo::detail::gpu {

void without_throwing(const char* what, const std::function<void()>& function) noexcept {
  try {
    function();
  } catch (const std::exception& error) {
    log(LogLevel::warning, "{}: {}", what, error.what());
  }
}

DeviceScope::DeviceScope(int device) : before_(api::current_device()), changed_(before_ != device) {
  if (changed_) api::use_device(device);
}

DeviceScope::~DeviceScope() {
  if (!changed_) return;
  without_throwing("going back to the device before", [this] {
    if (api::in_use(before_)) api::use_device(before_);
  });
}

template <class Handle>
Owner<Handle>::~Owner() {
  if (handle_ == nullptr) return;
  without_throwing("giving back a stream, an event or a memory pool", [this] {
    const DeviceScope scope(device_);
    api::destroy(handle_);
  });
}

template class Owner<api::Stream>;
template class Owner<api::Event>;
template class Owner<api::Pool>;

OwnedStream make_urgent_stream(int device) {
  const DeviceScope scope(device);
  return {device, api::make_stream(true)};
}

OwnedStream make_stream(int device) {
  const DeviceScope scope(device);
  return {device, api::make_stream(false)};
}

OwnedEvent make_event(int device) {
  const DeviceScope scope(device);
  return {device, api::make_event(false)};
}

OwnedPool make_pool(int device) { return {device, api::make_pool(device)}; }

DeviceMemory::DeviceMemory(int device, std::size_t bytes) : device_(device), bytes_(bytes) {
  const DeviceScope scope(device);
  data_ = static_cast<std::byte*>(api::allocate(bytes));
}

DeviceMemory::~DeviceMemory() {
  if (left_) return;
  without_throwing("releasing device memory", [this] {
    const DeviceScope scope(device_);
    api::release(data_);
  });
}

StreamMemory::StreamMemory(api::Pool pool, std::size_t bytes, api::Stream stream)
    : stream_(stream), data_(static_cast<std::byte*>(api::allocate_async(pool, bytes, stream))) {}

StreamMemory::~StreamMemory() {
  without_throwing("giving back memory of a pool", [this] { api::release_async(data_, stream_); });
}

OpenedMemory::OpenedMemory(int device, const api::IpcHandle& handle) : device_(device) {
  const DeviceScope scope(device);
  base_ = api::open_memory(handle);
  data_ = static_cast<std::byte*>(base_) + handle.offset;
}

OpenedMemory::~OpenedMemory() {
  if (base_ == nullptr) return;
  without_throwing("closing another process's device memory", [this] {
    const DeviceScope scope(device_);
    api::close_memory(base_);
  });
}

}  // namespace rondo::detail::gpu

// Owners of CUDA's resources. Each remembers its device; their destructors do not throw.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "cuda/api/api.hpp"

namespace rondo::detail::gpu {

// Runs `function`, which releases a resource, and logs its error: a destructor cannot throw it.
void without_throwing(const char* what, const std::function<void()>& function) noexcept;

// Uses a device in a scope, then the device that was used before. If this process has no context on
// the latter, does not return to it: that would make a context there, and take its memory, for
// nothing.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope();

 private:
  int before_;
  bool changed_;
};

// A stream, an event or a memory pool of a device.
template <class Handle>
class Owner {
 public:
  Owner() = default;
  // Takes the handle over.
  Owner(int device, Handle handle) : device_(device), handle_(handle) {}
  Owner(Owner&& other) noexcept { swap(other); }
  Owner& operator=(Owner&& other) noexcept {
    swap(other);
    return *this;
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner();

  [[nodiscard]] Handle get() const { return handle_; }

 private:
  void swap(Owner& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
  }

  int device_ = 0;
  Handle handle_ = nullptr;
};

using OwnedStream = Owner<api::Stream>;
using OwnedEvent = Owner<api::Event>;
using OwnedPool = Owner<api::Pool>;

// A stream whose kernels start before those of other streams that wait for room.
OwnedStream make_urgent_stream(int device);
OwnedStream make_stream(int device);
// An event that records no time.
OwnedEvent make_event(int device);
OwnedPool make_pool(int device);

// Zeroed device memory.
class DeviceMemory {
 public:
  DeviceMemory(int device, std::size_t bytes);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] bool holds(const void* address) const {
    return !std::less<>()(address, static_cast<const void*>(data_)) &&
           std::less<>()(address, static_cast<const void*>(data_ + bytes_));
  }
  // Keeps the memory until the process ends: a peer may still access it.
  void leave() { left_ = true; }

 private:
  int device_;
  std::size_t bytes_;
  std::byte* data_;
  bool left_ = false;
};

// Memory of a pool, taken and given back in the order of a stream.
class StreamMemory {
 public:
  StreamMemory(api::Pool pool, std::size_t bytes, api::Stream stream);
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;
  ~StreamMemory();

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  api::Stream stream_;
  std::byte* data_;
};

// Memory of another process.
class OpenedMemory {
 public:
  OpenedMemory() = default;
  OpenedMemory(int device, const api::IpcHandle& handle);
  OpenedMemory(OpenedMemory&& other) noexcept { swap(other); }
  OpenedMemory& operator=(OpenedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  OpenedMemory(const OpenedMemory&) = delete;
  OpenedMemory& operator=(const OpenedMemory&) = delete;
  ~OpenedMemory();

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  void swap(OpenedMemory& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(base_, other.base_);
    std::swap(data_, other.data_);
  }

  int device_ = 0;
  void* base_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace rondo::detail::gpu

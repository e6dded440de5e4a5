// Host memory that a device reaches too.
#pragma once

#include <cstddef>
#include <utility>

#include "memory/shared_memory.hpp"

namespace rondo::detail::gpu {

class PinnedMapping {
 public:
  PinnedMapping() = default;
  PinnedMapping(int device, Mapping mapping);
  PinnedMapping(PinnedMapping&& other) noexcept { swap(other); }
  PinnedMapping& operator=(PinnedMapping&& other) noexcept {
    swap(other);
    return *this;
  }
  PinnedMapping(const PinnedMapping&) = delete;
  PinnedMapping& operator=(const PinnedMapping&) = delete;
  ~PinnedMapping();

  [[nodiscard]] std::byte* host() const { return mapping_.data(); }
  [[nodiscard]] std::byte* device() const { return on_device_; }

 private:
  void swap(PinnedMapping& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(mapping_, other.mapping_);
    std::swap(on_device_, other.on_device_);
  }

  int device_ = 0;
  Mapping mapping_;
  std::byte* on_device_ = nullptr;
};

}  // namespace rondo::detail::gpu

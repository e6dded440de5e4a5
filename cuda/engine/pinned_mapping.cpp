#include "cuda/engine/pinned_mapping.hpp"

#include "cuda/api/handles.hpp"

namespace rondo::detail::gpu {

PinnedMapping::PinnedMapping(int device, Mapping mapping)
    : device_(device), mapping_(std::move(mapping)) {
  const DeviceScope scope(device);
  on_device_ = static_cast<std::byte*>(api::register_host(mapping_.data(), mapping_.bytes()));
}

PinnedMapping::~PinnedMapping() {
  if (on_device_ == nullptr) return;
  without_throwing("unpinning host memory", [this] {
    const DeviceScope scope(device_);
    api::unregister_host(mapping_.data());
  });
}

}  // namespace rondo::detail::gpu

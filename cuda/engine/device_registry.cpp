#include "cuda/engine/device_registry.hpp"

#include <utility>

namespace rondo::detail::gpu {

std::size_t DeviceBlock::table_bytes_for(int size) {
  constexpr std::size_t kAlignment = 256;  // of what CUDA allocates
  const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(std::uint64_t);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool DeviceRegistry::reaches_any() const {
  const std::lock_guard lock(mutex_);
  return one_device_ || !blocks_.empty();
}

std::optional<ShownBuffer> DeviceRegistry::find(const void* data, std::size_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(data);
  if (one_device_) return ShownBuffer{nullptr, reinterpret_cast<std::uintptr_t>(begin)};
  const std::lock_guard lock(mutex_);
  for (const auto& block : blocks_) {
    if (begin < block->data() || begin >= block->data() + block->bytes()) continue;
    const auto offset = static_cast<std::size_t>(begin - block->data());
    if (bytes > block->bytes() - offset) return std::nullopt;
    return ShownBuffer{block->table(), offset};
  }
  return std::nullopt;
}

void DeviceRegistry::add(std::shared_ptr<DeviceBlock> block) {
  const std::lock_guard lock(mutex_);
  blocks_.push_back(std::move(block));
}

std::vector<std::uint8_t> DeviceRegistry::freed() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint8_t> result;
  for (const auto& block : blocks_) result.push_back(block->freed() ? 1 : 0);
  return result;
}

void DeviceRegistry::release_others(const std::vector<bool>& which) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (which[i]) blocks_[i]->release_others();
  }
}

void DeviceRegistry::remove(const std::vector<bool>& which) {
  std::vector<std::shared_ptr<DeviceBlock>> removed;  // released without the lock
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<DeviceBlock>> kept;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    (which[i] ? removed : kept).push_back(std::move(blocks_[i]));
  }
  blocks_ = std::move(kept);
}

void DeviceRegistry::release_others() {
  const std::lock_guard lock(mutex_);
  for (const auto& block : blocks_) block->release_others();
}

void DeviceRegistry::leave_own() {
  const std::lock_guard lock(mutex_);
  for (const auto& block : blocks_) block->leave();
}

}  // namespace rondo::detail::gpu

// The device memory that all ranks of a group reach: how a call finds where the other ranks'
// kernels see its buffers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/owner_process.hpp"
#include "cuda/api/handles.hpp"
#include "cuda/protocol/arguments.hpp"

namespace rondo::detail::gpu {

// Memory of other ranks, mapped for this process's kernels. Must be released before its owners
// release it.
struct MappedMemory {
  std::vector<std::shared_ptr<DeviceMemory>> of_this_process;
  std::vector<OpenedMemory> of_others;
};

// What one rank has from one allocate(): its own memory, and that of the other ranks as it is
// mapped here. A table comes first, on the device: the address of this memory, behind the table, as
// each rank's kernels see it.
class DeviceBlock {
 public:
  static std::size_t table_bytes_for(int size);

  // A block of `bytes` bytes behind a table of `table_bytes`.
  DeviceBlock(std::shared_ptr<DeviceMemory> memory, std::size_t table_bytes, std::size_t bytes)
      : memory_(std::move(memory)), table_bytes_(table_bytes), bytes_(bytes) {}

  // Null where no rank asked for any bytes.
  [[nodiscard]] std::byte* data() const {
    return memory_ == nullptr ? nullptr : memory_->data() + table_bytes_;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t table_bytes() const { return table_bytes_; }
  [[nodiscard]] const std::shared_ptr<DeviceMemory>& memory() const { return memory_; }
  [[nodiscard]] std::uint64_t* table() const {
    return reinterpret_cast<std::uint64_t*>(memory_->data());
  }

  // The owner calls this once, when it will not use the memory again.
  void free() { freed_.store(true, std::memory_order_release); }
  [[nodiscard]] bool freed() const { return freed_.load(std::memory_order_acquire); }
  // Keeps the memory until the process ends: another rank may still access it.
  void leave() { memory_->leave(); }

  // Keeps and releases the memory of the other ranks.
  [[nodiscard]] MappedMemory& others() { return others_; }
  void release_others() { others_ = {}; }

  OwnerProcess owner_process;

 private:
  std::shared_ptr<DeviceMemory> memory_;
  MappedMemory others_;  // after `memory_`, and so released before it
  std::size_t table_bytes_;
  std::size_t bytes_;
  std::atomic<bool> freed_ =
      false;  // set by the owner, on any thread; read by the rank's next allocate()
};

// Its functions may be called from several threads at once.
class DeviceRegistry {
 public:
  // `one_device`: all ranks are in this process, on one device, and so reach all memory.
  explicit DeviceRegistry(bool one_device) : one_device_(one_device) {}

  [[nodiscard]] bool one_device() const { return one_device_; }
  // Whether ranks reach some memory of each other: the same on all ranks.
  [[nodiscard]] bool reaches_any() const;
  // Nothing if the other ranks do not reach all of it.
  [[nodiscard]] std::optional<ShownBuffer> find(const void* data, std::size_t bytes) const;

  // Collective, in the order of calls, as are the two below.
  void add(std::shared_ptr<DeviceBlock> block);
  // Returns for each block whether its owner has freed it.
  [[nodiscard]] std::vector<std::uint8_t> freed() const;
  // Releases the other ranks' memory in these blocks.
  void release_others(const std::vector<bool>& which);
  // Forgets these blocks, after all ranks have released the others' memory in them.
  void remove(const std::vector<bool>& which);

  // When the rank leaves the group: releases the other ranks' memory in all blocks.
  void release_others();
  // Keeps this rank's memory until the process ends.
  void leave_own();

 private:
  bool one_device_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<DeviceBlock>> blocks_;
};

}  // namespace rondo::detail::gpu

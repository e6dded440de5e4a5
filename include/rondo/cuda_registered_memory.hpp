/// \file
/// Device memory that the devices of a group reach without copies in between: made by
/// cuda::Communicator::allocate.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <rondo/export.hpp>
#include <rondo/types.hpp>

namespace rondo {

namespace detail::gpu {
class DeviceBlock;
}

namespace cuda {

/// The memory of a RegisteredMemory, without an element type.
class RONDO_API RegisteredBytes {
 public:
  explicit RegisteredBytes(std::shared_ptr<detail::gpu::DeviceBlock> block);
  RegisteredBytes(RegisteredBytes&&) noexcept;
  RegisteredBytes& operator=(RegisteredBytes&&) noexcept;
  RegisteredBytes(const RegisteredBytes&) = delete;
  RegisteredBytes& operator=(const RegisteredBytes&) = delete;
  ~RegisteredBytes();

  /// On the device.
  [[nodiscard]] std::byte* data() const;

 private:
  std::shared_ptr<detail::gpu::DeviceBlock> block_;
};

/// Owns `size()` elements on a rank's device, aligned to 256 bytes. Where ranks have different
/// devices or processes, it takes a multiple of 2 MiB. It can be moved, not copied; an object that
/// was moved from is empty. Calls take its span(), or parts of it:
///
///     rondo::cuda::RegisteredMemory<float> gradient = gpus.allocate<float>(1'000'000);
///     gpus.all_reduce(gradient.span(), rondo::ReduceOp::avg, stream);
///
/// A host can read it only by cudaMemcpy. It must not be destroyed before the calls that use it
/// have ended, and graphs with such calls must not be launched afterwards. Where other devices or
/// processes reach the memory, the device has it again at the next allocate() after all ranks have
/// destroyed theirs; once the communicator is destroyed, when the object is. Elsewhere it is freed
/// at once, which waits for the calls that run on the device, also for those of other ranks.
template <Element T>
class RegisteredMemory {
 public:
  RegisteredMemory(RegisteredBytes bytes, std::size_t count)
      : bytes_(std::move(bytes)), count_(count) {}
  RegisteredMemory(RegisteredMemory&& other) noexcept
      : bytes_(std::move(other.bytes_)), count_(std::exchange(other.count_, 0)) {}
  RegisteredMemory& operator=(RegisteredMemory&& other) noexcept {
    bytes_ = std::move(other.bytes_);
    count_ = std::exchange(other.count_, 0);
    return *this;
  }
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;
  ~RegisteredMemory() = default;

  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::span<T> span() const { return {data(), count_}; }

 private:
  RegisteredBytes bytes_;
  std::size_t count_;
};

}  // namespace cuda
}  // namespace rondo

/// \file
/// Memory that the ranks of one host reach without copies in between: made by
/// Communicator::allocate.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <rondo/export.hpp>
#include <rondo/types.hpp>

namespace rondo {

namespace detail {
class RegisteredBlock;
}

/// The memory of a RegisteredMemory, without an element type.
class RONDO_API RegisteredBytes {
 public:
  explicit RegisteredBytes(std::shared_ptr<detail::RegisteredBlock> block);
  RegisteredBytes(RegisteredBytes&&) noexcept;
  RegisteredBytes& operator=(RegisteredBytes&&) noexcept;
  RegisteredBytes(const RegisteredBytes&) = delete;
  RegisteredBytes& operator=(const RegisteredBytes&) = delete;
  ~RegisteredBytes();

  [[nodiscard]] std::byte* data() const;

 private:
  std::shared_ptr<detail::RegisteredBlock> block_;
};

/// Owns `size()` elements, aligned to a page. It can be moved, not copied, and passed to calls as
/// it is, or in parts:
///
///     rondo::RegisteredMemory<float> gradient = comm.allocate<float>(1'000'000);
///     comm.all_reduce(gradient, rondo::ReduceOp::avg);
///     comm.all_reduce(gradient.span().subspan(10, 100));
///
/// Its memory is given back to the system when it is destroyed, on this rank alone. An object that
/// was moved from is empty. If a call on a failed communicator finds that a process which was
/// stopped still writes to this rank's memory, it replaces that memory by private memory with the
/// same contents, at the same addresses.
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

  [[nodiscard]] T* data() { return reinterpret_cast<T*>(bytes_.data()); }
  [[nodiscard]] const T* data() const { return reinterpret_cast<const T*>(bytes_.data()); }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::span<T> span() { return {data(), count_}; }
  [[nodiscard]] std::span<const T> span() const { return {data(), count_}; }
  [[nodiscard]] T* begin() { return data(); }
  [[nodiscard]] T* end() { return data() + count_; }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + count_; }
  T& operator[](std::size_t index) { return data()[index]; }
  const T& operator[](std::size_t index) const { return data()[index]; }

 private:
  RegisteredBytes bytes_;
  std::size_t count_;
};

}  // namespace rondo

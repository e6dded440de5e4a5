/// \file
/// The typed owner of reachable memory: made by Communicator::allocate, or without a communicator.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <rondo/export.hpp>
#include <rondo/types.hpp>

namespace rondo {

/// Reachable memory for `count` elements of `element_bytes` bytes, zeroed, aligned to a page, for
/// owners other than RegisteredMemory; free_elements() frees it. Throws UsageError (more bytes than
/// there are addresses) and TransportError (too little memory; says what to change).
[[nodiscard]] RONDO_API void* allocate_elements(std::size_t count, std::size_t element_bytes);
/// Any thread may call. Does nothing with null.
RONDO_API void free_elements(void* elements) noexcept;

/// Owns `size()` elements of memory that the other processes of the host reach
/// (rondo/reachable_memory.hpp), aligned to a page. It can be moved, not copied, and passed to
/// calls as it is, or in parts:
///
///     rondo::RegisteredMemory<float> gradient(1'000'000);
///     comm.all_reduce(gradient, rondo::ReduceOp::avg);
///     comm.all_reduce(gradient.span().subspan(10, 100));
///
/// An object that was moved from is empty. Any thread may destroy it, but not while a call uses its
/// memory.
template <Element T>
class RegisteredMemory {
 public:
  /// No elements.
  RegisteredMemory() = default;
  /// `count` elements, zeroed. Throws as allocate_elements() does.
  explicit RegisteredMemory(std::size_t count)
      : data_(allocate_elements(count, sizeof(T))), count_(count) {}
  RegisteredMemory(RegisteredMemory&& other) noexcept
      : data_(std::move(other.data_)), count_(std::exchange(other.count_, 0)) {}
  RegisteredMemory& operator=(RegisteredMemory&& other) noexcept {
    data_ = std::move(other.data_);
    count_ = std::exchange(other.count_, 0);
    return *this;
  }
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;
  ~RegisteredMemory() = default;

  [[nodiscard]] T* data() { return static_cast<T*>(data_.get()); }
  [[nodiscard]] const T* data() const { return static_cast<const T*>(data_.get()); }
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
  struct Free {
    void operator()(void* elements) const noexcept { free_elements(elements); }
  };
  std::unique_ptr<void, Free> data_;
  std::size_t count_ = 0;
};

}  // namespace rondo

// The memory operations that the protocols are made of, at system scope: the other end may be
// another thread, another process or another device.
#pragma once

#include <cstdint>

#include "base/portable.hpp"

#ifdef __CUDA_ARCH__
#include <cuda/atomic>
#else
#include <atomic>
#endif

namespace rondo::detail {

// Everything the storing side wrote before its store_release is visible after this returns its
// value.
RONDO_HOST_DEVICE inline std::uint64_t load_acquire(std::uint64_t& word) {
#ifdef __CUDA_ARCH__
  return cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(word).load(
      cuda::memory_order_acquire);
#else
  return std::atomic_ref<std::uint64_t>(word).load(std::memory_order_acquire);
#endif
}

RONDO_HOST_DEVICE inline void store_release(std::uint64_t& word, std::uint64_t value) {
#ifdef __CUDA_ARCH__
  cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(word).store(
      value, cuda::memory_order_release);
#else
  std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_release);
#endif
}

// These do not order other loads and stores: for a word whose value is all that is communicated.
RONDO_HOST_DEVICE inline std::uint64_t load_relaxed(std::uint64_t& word) {
#ifdef __CUDA_ARCH__
  return cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(word).load(
      cuda::memory_order_relaxed);
#else
  return std::atomic_ref<std::uint64_t>(word).load(std::memory_order_relaxed);
#endif
}

RONDO_HOST_DEVICE inline void store_relaxed(std::uint64_t& word, std::uint64_t value) {
#ifdef __CUDA_ARCH__
  cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(word).store(
      value, cuda::memory_order_relaxed);
#else
  std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_relaxed);
#endif
}

// Raises the word to `value` if it is less, in one step, and returns what it was. Of two threads
// that raise the same word, one finds what the other has stored, and then also what that one wrote
// before. Between devices only where they support atomic operations on each other's memory.
RONDO_HOST_DEVICE inline std::uint64_t raise_to(std::uint64_t& word, std::uint64_t value) {
#ifdef __CUDA_ARCH__
  return cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>(word).fetch_max(
      value, cuda::memory_order_acq_rel);
#else
  std::atomic_ref<std::uint64_t> atomic(word);
  std::uint64_t before = atomic.load(std::memory_order_acquire);
  while (before < value && !atomic.compare_exchange_weak(before, value, std::memory_order_acq_rel,
                                                         std::memory_order_acquire)) {
  }
  return before;
#endif
}

// What this thread wrote before the fence, and what other threads wrote that it had seen, is
// visible to every thread that loads with acquire a value stored by store_after_fence after this
// fence. On a device one fence serves several stores, whereas each store_release would wait for all
// writes again. On a host a release costs nothing, so store_after_fence is itself a store_release.
RONDO_HOST_DEVICE inline void fence_before_stores() {
#ifdef __CUDA_ARCH__
  cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_system);
#endif
}

RONDO_HOST_DEVICE inline void store_after_fence(std::uint64_t& word, std::uint64_t value) {
#ifdef __CUDA_ARCH__
  store_relaxed(word, value);
#else
  store_release(word, value);
#endif
}

}  // namespace rondo::detail

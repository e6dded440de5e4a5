// One element at a time. Inlined into its caller, so that the compiler may vectorise it for
// whatever instruction set the caller is compiled for.
#pragma once

#include <cstddef>
#include <cstring>

namespace rondo::detail {

// memcpy, since a caller's buffer need not be aligned to the element.
template <class T, class Op>
[[gnu::always_inline]] inline void scalar_loop(std::byte* dst, std::byte* also, const std::byte* a,
                                               const std::byte* b, std::size_t count, Op op) {
  for (std::size_t i = 0; i < count; ++i) {
    T x;
    T y;
    std::memcpy(&x, a + i * sizeof(T), sizeof(T));
    std::memcpy(&y, b + i * sizeof(T), sizeof(T));
    const T value = op(x, y);
    std::memcpy(dst + i * sizeof(T), &value, sizeof(T));
    if (also != nullptr) std::memcpy(also + i * sizeof(T), &value, sizeof(T));
  }
}

}  // namespace rondo::detail

// A block's threads move elements together: 16 bytes a thread at a time where all pointers allow
// it, several loads of each thread under way at once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/portable.hpp"
#include "cuda/protocol/block.hpp"

namespace rondo::detail::gpu {

// What one wide access moves.
struct alignas(16) Pack {
  std::uint32_t words[4];
};

RONDO_HOST_DEVICE inline Pack load_pack(const std::byte* from) {
#ifdef __CUDA_ARCH__
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  return {{raw.x, raw.y, raw.z, raw.w}};
#else
  Pack pack;
  std::memcpy(&pack, from, sizeof(pack));
  return pack;
#endif
}

RONDO_HOST_DEVICE inline void store_pack(std::byte* to, const Pack& pack) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<uint4*>(to) =
      make_uint4(pack.words[0], pack.words[1], pack.words[2], pack.words[3]);
#else
  std::memcpy(to, &pack, sizeof(pack));
#endif
}

// Accesses of one element, where pointers are aligned only to elements.
template <class T>
struct Single {
  RONDO_HOST_DEVICE static T load(const std::byte* from) {
    return *reinterpret_cast<const T*>(from);
  }
  RONDO_HOST_DEVICE static void store(std::byte* to, const T& value) {
    *reinterpret_cast<T*>(to) = value;
  }
};
struct Wide {
  RONDO_HOST_DEVICE static Pack load(const std::byte* from) { return load_pack(from); }
  RONDO_HOST_DEVICE static void store(std::byte* to, const Pack& pack) { store_pack(to, pack); }
};

template <class T>
struct PackOf {
  T elements[sizeof(Pack) / sizeof(T)];
};

template <class T, class Operation>
RONDO_HOST_DEVICE Pack combine_packs(const Pack& a, const Pack& b, const Operation& operation) {
  auto x = std::bit_cast<PackOf<T>>(a);
  const auto y = std::bit_cast<PackOf<T>>(b);
  for (std::size_t i = 0; i < sizeof(Pack) / sizeof(T); ++i) {
    x.elements[i] = operation(x.elements[i], y.elements[i]);
  }
  return std::bit_cast<Pack>(x);
}

// Calls `load(i)` and then `store(i, value)` for every i of this thread below `count`. All loads of
// a batch come before its first store, so that they overlap. The rest after the last whole batch is
// moved in batches of half the size, and so on: conditions within a batch would cost registers.
template <int kBatch, Block B, class Load, class Store>
RONDO_HOST_DEVICE void in_batches(B& block, std::uint64_t count, Load load, Store store,
                                  std::uint64_t first) {
  const std::uint64_t stride = block.threads();
  std::uint64_t i = first;
  for (; i + (kBatch - 1) * stride < count; i += kBatch * stride) {
    decltype(load(i)) values[kBatch];
    RONDO_UNROLL
    for (int k = 0; k < kBatch; ++k) values[k] = load(i + static_cast<std::uint64_t>(k) * stride);
    RONDO_UNROLL
    for (int k = 0; k < kBatch; ++k) store(i + static_cast<std::uint64_t>(k) * stride, values[k]);
  }
  if constexpr (kBatch > 1) in_batches<kBatch / 2>(block, count, load, store, i);
}

// Where values go: one or two places.
struct Targets {
  std::byte* first = nullptr;
  std::byte* second = nullptr;  // null: none
};

RONDO_HOST_DEVICE inline bool all_aligned(const Targets& to, const std::byte* a,
                                          const std::byte* b) {
  const auto bits = reinterpret_cast<std::uintptr_t>(to.first) |
                    reinterpret_cast<std::uintptr_t>(to.second) |
                    reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b);
  return bits % sizeof(Pack) == 0;
}

template <class Access, int kBatch, Block B>
RONDO_HOST_DEVICE void copy_units(B& block, const Targets& to, const std::byte* from,
                                  std::uint64_t count) {
  using Unit = decltype(Access::load(from));
  in_batches<kBatch>(
      block, count, [&](std::uint64_t i) { return Access::load(from + i * sizeof(Unit)); },
      [&](std::uint64_t i, const Unit& value) {
        Access::store(to.first + i * sizeof(Unit), value);
        if (to.second != nullptr) Access::store(to.second + i * sizeof(Unit), value);
      },
      block.thread());
}

// to ← from, `count` elements.
template <class T, Block B>
RONDO_HOST_DEVICE void copy_elements(B& block, const Targets& to, const std::byte* from,
                                     std::uint64_t count) {
  constexpr std::uint64_t kPerPack = sizeof(Pack) / sizeof(T);
  std::uint64_t done = 0;
  if (all_aligned(to, from, nullptr)) {
    copy_units<Wide, 8>(block, to, from, count / kPerPack);
    done = count / kPerPack * kPerPack;
  }
  const std::uint64_t skip = done * sizeof(T);
  copy_units<Single<T>, 4>(block,
                           {to.first + skip, to.second == nullptr ? nullptr : to.second + skip},
                           from + skip, count - done);
}

template <class Unit>
struct Operands {
  Unit a;
  Unit b;
};

template <class Access, int kBatch, Block B, class Operation>
RONDO_HOST_DEVICE void combine_units(B& block, const Targets& to, const std::byte* a,
                                     const std::byte* b, std::uint64_t count,
                                     const Operation& operation) {
  using Unit = decltype(Access::load(a));
  in_batches<kBatch>(
      block, count,
      [&](std::uint64_t i) {
        return Operands<Unit>{Access::load(a + i * sizeof(Unit)),
                              Access::load(b + i * sizeof(Unit))};
      },
      [&](std::uint64_t i, const Operands<Unit>& operands) {
        const Unit value = operation(operands.a, operands.b);
        Access::store(to.first + i * sizeof(Unit), value);
        if (to.second != nullptr) Access::store(to.second + i * sizeof(Unit), value);
      },
      block.thread());
}

// to ← a operation b, `count` elements.
template <class T, Block B, class Operation>
RONDO_HOST_DEVICE void combine_elements(B& block, const Targets& to, const std::byte* a,
                                        const std::byte* b, std::uint64_t count,
                                        const Operation& operation) {
  constexpr std::uint64_t kPerPack = sizeof(Pack) / sizeof(T);
  std::uint64_t done = 0;
  if (all_aligned(to, a, b)) {
    const auto combine = [&operation](const Pack& x, const Pack& y) {
      return combine_packs<T>(x, y, operation);
    };
    combine_units<Wide, 4>(block, to, a, b, count / kPerPack, combine);
    done = count / kPerPack * kPerPack;
  }
  const std::uint64_t skip = done * sizeof(T);
  combine_units<Single<T>, 4>(block,
                              {to.first + skip, to.second == nullptr ? nullptr : to.second + skip},
                              a + skip, b + skip, count - done, operation);
}

}  // namespace rondo::detail::gpu

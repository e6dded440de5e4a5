// A rank's part in a one_shot call, for all ranks of its host to read: posted once, read by everyone.
// Zeroed memory is a box in which nothing was posted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fifo/atomics.hpp"
#include "fifo/signature.hpp"

namespace rondo::detail {

struct alignas(64) BoxHeader {
  // Number of the one_shot call, from 1. Written by the owner with release, after all else in the box; read
  // by the others with acquire, before it.
  std::uint64_t number = 0;
  Signature signature;
};

// What the rest of the header's line holds travels with it, for the price of one line.
inline constexpr std::size_t kBoxInlineBytes =
    sizeof(BoxHeader) - sizeof(std::uint64_t) - sizeof(Signature);

// What a call of `bytes` posts begins here.
inline std::byte* box_payload(BoxHeader* box, std::size_t bytes) {
  std::byte* end = reinterpret_cast<std::byte*>(box + 1);
  return bytes <= kBoxInlineBytes ? end - kBoxInlineBytes : end;
}

constexpr std::size_t box_stride(std::size_t most_bytes) {
  return (sizeof(BoxHeader) + most_bytes + 127) / 128 * 128;
}

}  // namespace rondo::detail

// A rank's part in a one_shot call, for all ranks of its host to read: posted once, read by everyone.
// Zeroed memory is an outbox in which nothing was posted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fifo/atomics.hpp"
#include "fifo/signature.hpp"

namespace rondo::detail {

struct alignas(64) OutboxHeader {
  // Number of the one_shot call, from 1. Written by the owner with release, after all else in the outbox; read
  // by the others with acquire, before it.
  std::uint64_t number = 0;
  Signature signature;
};

// What the rest of the header's line holds travels with it, for the price of one line.
inline constexpr std::size_t kOutboxInlineBytes =
    sizeof(OutboxHeader) - sizeof(std::uint64_t) - sizeof(Signature);

// What a call of `bytes` posts begins here.
inline std::byte* outbox_payload(OutboxHeader* outbox, std::size_t bytes) {
  std::byte* end = reinterpret_cast<std::byte*>(outbox + 1);
  return bytes <= kOutboxInlineBytes ? end - kOutboxInlineBytes : end;
}

constexpr std::size_t box_stride(std::size_t most_bytes) {
  return (sizeof(OutboxHeader) + most_bytes + 127) / 128 * 128;
}

}  // namespace rondo::detail

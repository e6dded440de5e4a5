// An outbox holds what a rank contributes to a one_shot call. The rank writes it once, and all
// ranks of its host read it. Zeroed memory is an outbox in which nothing was posted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fifo/atomics.hpp"
#include "fifo/signature.hpp"

namespace rondo::detail {

struct alignas(64) OutboxHeader {
  // Number of the one_shot call, from 1. Written by the owner with release, after the rest of the
  // outbox; read by the others with acquire, before the rest.
  std::uint64_t number = 0;
  Signature signature;
};

// A payload up to this size lies in the rest of the header's cache line, so that readers fetch one
// line only.
inline constexpr std::size_t kOutboxInlineBytes =
    sizeof(OutboxHeader) - sizeof(std::uint64_t) - sizeof(Signature);

// Returns where the payload of `bytes` bytes begins.
inline std::byte* outbox_payload(OutboxHeader* outbox, std::size_t bytes) {
  std::byte* end = reinterpret_cast<std::byte*>(outbox + 1);
  return bytes <= kOutboxInlineBytes ? end - kOutboxInlineBytes : end;
}

constexpr std::size_t box_stride(std::size_t most_bytes) {
  return (sizeof(OutboxHeader) + most_bytes + 127) / 128 * 128;
}

}  // namespace rondo::detail

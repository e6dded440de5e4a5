// What identifies a call: it travels in every slot, and the receiver compares it with its own.
#pragma once

#include <cstdint>

#include "base/portable.hpp"

namespace rondo::detail {

struct Signature {
  // Number of the call on its communicator, from 0; on devices, on its channel. Of a message: among
  // those from its sender to its receiver; between devices, the same for all messages of a
  // communicator.
  std::uint64_t sequence = 0;
  std::uint64_t count = 0;
  // In a message this is its sender; in a call with chunks of its own sizes, a checksum of them.
  std::int32_t root = 0;
  // Enumerators of the public types; kept as bytes since they arrive from another process.
  std::uint8_t collective = 0;
  std::uint8_t algorithm = 0;
  std::uint8_t type = 0;
  std::uint8_t op = 0;

  friend RONDO_HOST_DEVICE constexpr bool operator==(const Signature& a, const Signature& b) {
    return a.sequence == b.sequence && a.count == b.count && a.root == b.root &&
           a.collective == b.collective && a.algorithm == b.algorithm && a.type == b.type &&
           a.op == b.op;
  }
};

}  // namespace rondo::detail

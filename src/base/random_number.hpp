// A number that no other process, here or on another host, is likely to draw.
#pragma once

#include <cstdint>
#include <random>

namespace rondo::detail {

inline std::uint64_t random_number() {
  std::random_device random;
  return (std::uint64_t{random()} << 32U) | random();
}

}  // namespace rondo::detail

// A hash of a text that is the same on all machines (Fowler, Noll and Vo's 1a).
#pragma once

#include <cstdint>
#include <string_view>

namespace rondo::detail {

constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return hash;
}

}  // namespace rondo::detail

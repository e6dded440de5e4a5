// Texts in arrays of fixed size, which can be sent as bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace rondo::detail {

// Copies a text into a fixed array, cut to fit.
template <std::size_t N>
void put(std::array<char, N>& to, std::string_view from) {
  const std::size_t length = std::min(from.size(), N - 1);
  std::memcpy(to.data(), from.data(), length);
  to[length] = '\0';
}

}  // namespace rondo::detail

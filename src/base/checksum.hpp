// A checksum of the sizes in a call, by which ranks notice that theirs differ.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rondo::detail {

// Adds sizes one by one (FNV-1a, on the bytes of each).
class SizesChecksum {
 public:
  void add(std::size_t size) {
    for (unsigned bit = 0; bit < 64; bit += 8) {
      sum_ = (sum_ ^ static_cast<std::uint8_t>(std::uint64_t{size} >> bit)) * 16777619U;
    }
  }
  // Never 0, which stands for a call without such sizes.
  [[nodiscard]] std::uint32_t value() const { return sum_ | 1U; }

 private:
  std::uint32_t sum_ = 2166136261U;
};

}  // namespace rondo::detail

// What is taken from which size on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rondo::detail {

template <class T>
class BySize {
 public:
  void add(std::uint64_t from_bytes, T value) {
    const auto after = std::upper_bound(
        by_size_.begin(), by_size_.end(), from_bytes,
        [](std::uint64_t bytes, const FromSize& one) { return bytes < one.from_bytes; });
    by_size_.insert(after, {from_bytes, value});
  }
  // That of the largest `from_bytes` that is at most `bytes`; `otherwise` if there is none.
  [[nodiscard]] T at(std::uint64_t bytes, T otherwise = {}) const {
    for (const FromSize& one : by_size_) {
      if (one.from_bytes > bytes) break;
      otherwise = one.value;
    }
    return otherwise;
  }
  [[nodiscard]] bool empty() const { return by_size_.empty(); }

 private:
  struct FromSize {
    std::uint64_t from_bytes = 0;
    T value{};
  };
  std::vector<FromSize> by_size_;  // ascending
};

}  // namespace rondo::detail

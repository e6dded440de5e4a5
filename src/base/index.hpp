// A rank, position, enumerator or other number that is never negative, as the index of an array.
#pragma once

#include <cassert>
#include <cstddef>

namespace rondo::detail {

class Index {
 public:
  constexpr explicit Index(std::size_t value) : value_(value) {}
  template <class Number>
  constexpr explicit Index(Number value) : value_(static_cast<std::size_t>(value)) {
    assert(static_cast<long long>(value) >= 0);
  }
  // Implicit, since that is what this class is for.
  // NOLINTNEXTLINE(google-explicit-constructor,misc-explicit-constructor)
  constexpr operator std::size_t() const { return value_; }

 private:
  std::size_t value_;
};

}  // namespace rondo::detail

// A set of algorithms.
#pragma once

#include <cstdint>
#include <initializer_list>

#include <rondo/types.hpp>

namespace rondo::detail {

class AlgorithmSet {
 public:
  constexpr AlgorithmSet() = default;
  constexpr AlgorithmSet(std::initializer_list<Algorithm> algorithms) {
    for (const Algorithm algorithm : algorithms) add(algorithm);
  }
  constexpr void add(Algorithm algorithm) { bits_ |= 1U << static_cast<unsigned>(algorithm); }
  [[nodiscard]] constexpr bool has(Algorithm algorithm) const {
    return (bits_ & (1U << static_cast<unsigned>(algorithm))) != 0;
  }
  friend constexpr bool operator==(AlgorithmSet, AlgorithmSet) = default;

 private:
  std::uint32_t bits_ = 0;
};

}  // namespace rondo::detail

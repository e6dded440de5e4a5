// What two ranks use a pairwise edge for. There may be one for each use, in each direction, so that
// a message that nobody has received yet does not stand before what a tree carries.
#pragma once

#include <array>
#include <cstdint>

#include <rondo/types.hpp>

namespace rondo::detail {

enum class PairwiseUse : std::uint8_t { exchanges, trees };  // by `pairwise`, by `tree`
inline constexpr int kPairwiseUses = 2;

// One for each use.
template <class T>
using ByPairwiseUse = std::array<T, kPairwiseUses>;

constexpr bool uses_pairwise_edges(Algorithm algorithm) {
  return algorithm == Algorithm::pairwise || algorithm == Algorithm::tree;
}
// Of an algorithm that uses them.
constexpr PairwiseUse pairwise_use(Algorithm algorithm) {
  return algorithm == Algorithm::tree ? PairwiseUse::trees : PairwiseUse::exchanges;
}

}  // namespace rondo::detail

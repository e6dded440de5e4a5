/// \file
/// How a buffer is cut into the chunks that ranks own.
#pragma once

#include <cstdint>

#include <rondo/export.hpp>

namespace rondo {

/// A run of elements.
struct Range {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;

  friend constexpr bool operator==(const Range&, const Range&) = default;
};

/// The chunk with number `index` when `count` elements are cut into `chunks` parts whose borders
/// fall on multiples of `granule` elements. Sizes differ by at most one granule, larger chunks
/// first; every element is in exactly one chunk, and late chunks are empty when elements run out.
///
/// With the default granule this is what reduce_scatter leaves on rank `index`, and what all_gather
/// takes from it. When `chunks` divides `count`, all chunks are equal.
constexpr Range chunk_range(std::uint64_t count, std::uint64_t chunks, std::uint64_t index,
                            std::uint64_t granule = 1) {
  const std::uint64_t granules = count / granule + (count % granule != 0 ? 1 : 0);
  const std::uint64_t share = granules / chunks;
  const std::uint64_t larger = granules % chunks;
  const std::uint64_t begin = index * share + (index < larger ? index : larger);
  const std::uint64_t end = begin + share + (index < larger ? 1 : 0);
  const std::uint64_t offset = begin < granules ? begin * granule : count;
  const std::uint64_t stop = end < granules ? end * granule : count;
  return {offset, stop - offset};
}

}  // namespace rondo

// What each rank does in a `direct` call, where every rank can read and write the buffers of all
// ranks: the vector is cut into one chunk for each rank, and each rank handles its chunk of all
// buffers. It reads the inputs of `sources`, reduces them in the order of ranks where the
// collective reduces, and writes the outputs of `targets`. No two ranks write the same element, and
// none reads an element that another rank writes.
//
// Example: four ranks, all_reduce in place. Rank 2 reads chunk 2 of the buffers of ranks 0, 1, 2
// and 3, and writes the sum to chunk 2 of all four.
#pragma once

#include <cstdint>

#include <rondo/chunk.hpp>
#include <rondo/types.hpp>

namespace rondo::detail {

struct RankRange {
  int first = 0;
  int count = 0;

  [[nodiscard]] constexpr bool has(int rank) const { return rank >= first && rank < first + count; }
};

struct DirectCall {
  Collective collective = Collective::barrier;
  int size = 1;
  int root = 0;
  std::uint64_t count = 0;
  // Chunk borders are multiples of this many elements where the caller cannot see them.
  std::uint64_t granule = 1;

  // The elements that `rank` handles.
  [[nodiscard]] constexpr Range elements(int rank) const {
    return chunk_range(count, static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(rank),
                       shows_chunks() ? 1 : granule);
  }
  // The ranks whose inputs `rank` reads.
  [[nodiscard]] constexpr RankRange sources(int rank) const {
    if (collective == Collective::all_gather) return {rank, 1};
    if (collective == Collective::broadcast) return {root, 1};
    return {0, size};
  }
  // The ranks whose outputs `rank` writes.
  [[nodiscard]] constexpr RankRange targets(int rank) const {
    if (collective == Collective::reduce_scatter) return {rank, 1};
    if (collective == Collective::reduce) return {root, 1};
    return {0, size};
  }
  // Which elements of the vector are in the input and in the output of `rank`; none if nobody reads
  // or writes it.
  [[nodiscard]] constexpr Range input(int rank) const {
    if (collective == Collective::all_gather) return elements(rank);
    return collective == Collective::broadcast && rank != root ? Range{} : Range{0, count};
  }
  [[nodiscard]] constexpr Range output(int rank) const {
    if (collective == Collective::reduce_scatter) return elements(rank);
    return collective == Collective::reduce && rank != root ? Range{} : Range{0, count};
  }

 private:
  // Only in reduce_scatter and all_gather can the caller see which rank owns which elements.
  [[nodiscard]] constexpr bool shows_chunks() const {
    return collective == Collective::reduce_scatter || collective == Collective::all_gather;
  }
};

}  // namespace rondo::detail

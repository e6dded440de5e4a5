// What a block does in the buffers of all ranks: its threads reduce elements of several inputs in
// the order of ranks, or copy those of one, and write the result to several outputs.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cuda/protocol/block.hpp"
#include "cuda/protocol/moves.hpp"
#include "reduce/average.hpp"
#include "schedule/direct_part.hpp"

namespace rondo::detail::gpu {

// The elements that one access moves, while they are reduced: a Pack, a word or a single element of
// each operand.
template <class Reduction, class Unit>
class Sums {
  using T = typename Reduction::Element;
  static constexpr std::size_t kElements = sizeof(Unit) / sizeof(T);
  struct Elements {
    T of[kElements];
  };

 public:
  RONDO_HOST_DEVICE void begin_with(const Unit& unit, const AverageFactors& average) {
    const auto elements = std::bit_cast<Elements>(unit);
    RONDO_UNROLL
    for (std::size_t i = 0; i < kElements; ++i)
      sums_[i] = Reduction::accumulator(elements.of[i], average);
  }
  RONDO_HOST_DEVICE void add(const Unit& unit, const AverageFactors& average) {
    const auto elements = std::bit_cast<Elements>(unit);
    RONDO_UNROLL
    for (std::size_t i = 0; i < kElements; ++i) {
      sums_[i] = Reduction::combine(sums_[i], Reduction::accumulator(elements.of[i], average));
    }
  }
  [[nodiscard]] RONDO_HOST_DEVICE Unit result(const AverageFactors& average) const {
    Elements elements;
    RONDO_UNROLL
    for (std::size_t i = 0; i < kElements; ++i) {
      elements.of[i] = Reduction::result(sums_[i], average);
    }
    return std::bit_cast<Unit>(elements);
  }

 private:
  typename Reduction::Accumulator sums_[kElements] = {};
};

// The rank after `rank` in `ranks`, where the first follows the last.
RONDO_HOST_DEVICE inline int next_of(const RankRange& ranks, int rank) {
  return rank + 1 == ranks.first + ranks.count ? ranks.first : rank + 1;
}

// Units from `first` on, in steps of the block's threads, below `count`. `at`: the address of unit
// 0, as an offset from where each rank's vector begins. `kSourcesAtOnce`: how many inputs are
// loaded before the first of them is added, so that the loads overlap. `first_target`: which of the
// targets is written first; the others follow in the order of ranks, and after the last the first.
template <class Reduction, class Access, int kSourcesAtOnce, int kBatch, Block B>
RONDO_HOST_DEVICE void fold_units(B& block, const RankRange& sources, const RankRange& targets,
                                  int first_target, std::uint64_t at, std::uint64_t count,
                                  std::uint64_t first) {
  using Unit = decltype(Access::load(nullptr));
  const RankBuffers* buffers = block.buffers();
  const std::uint64_t stride = block.threads();
  const AverageFactors average = Reduction::average(sources.count);
  const auto offset = [&](std::uint64_t i, int k) {
    return at + (i + static_cast<std::uint64_t>(k) * stride) * sizeof(Unit);
  };
  std::uint64_t i = first;
  for (; i + (kBatch - 1) * stride < count; i += kBatch * stride) {
    Sums<Reduction, Unit> sums[kBatch];
    RONDO_DO_NOT_UNROLL
    for (int source = 0; source < sources.count; source += kSourcesAtOnce) {
      Unit loaded[kSourcesAtOnce][kBatch];
      RONDO_UNROLL
      for (int s = 0; s < kSourcesAtOnce; ++s) {
        if (source + s >= sources.count) break;
        const std::uint64_t in = buffers[sources.first + source + s].in;
        RONDO_UNROLL
        for (int k = 0; k < kBatch; ++k) loaded[s][k] = Access::load(pointer(in + offset(i, k)));
      }
      RONDO_UNROLL
      for (int s = 0; s < kSourcesAtOnce; ++s) {
        if (source + s >= sources.count) break;
        RONDO_UNROLL
        for (int k = 0; k < kBatch; ++k) {
          if (s == 0 && source == 0) {
            sums[k].begin_with(loaded[s][k], average);
          } else {
            sums[k].add(loaded[s][k], average);
          }
        }
      }
    }
    RONDO_UNROLL
    for (int k = 0; k < kBatch; ++k) {
      const Unit value = sums[k].result(average);
      int target = first_target;
      for (int t = 0; t < targets.count; ++t) {
        Access::store(pointer(buffers[target].out + offset(i, k)), value);
        target = next_of(targets, target);
      }
    }
  }
  if constexpr (kBatch > 1) {
    fold_units<Reduction, Access, kSourcesAtOnce, kBatch / 2>(block, sources, targets, first_target,
                                                              at, count, i);
  }
}

// How many elements of a part come before its first whole pack, and how many whole packs follow;
// the other elements come behind these.
struct PackBorders {
  std::uint64_t before = 0;
  std::uint64_t packs = 0;
};

// How `part` falls into packs whose addresses are multiples of their size in all these buffers. If
// there is no such way, all elements come before the first pack.
template <class T, Block B>
RONDO_HOST_DEVICE PackBorders pack_borders(B& block, const RankRange& sources,
                                           const RankRange& targets, const Range& part) {
  const RankBuffers* buffers = block.buffers();
  const std::uint64_t some = buffers[sources.first].in;
  std::uint64_t differing = 0;
  for (int s = 0; s < sources.count; ++s) differing |= buffers[sources.first + s].in ^ some;
  for (int t = 0; t < targets.count; ++t) differing |= buffers[targets.first + t].out ^ some;
  if (differing % sizeof(Pack) != 0) return {part.count, 0};
  const std::uint64_t beyond = (some + part.offset * sizeof(T)) % sizeof(Pack);
  const std::uint64_t before = (sizeof(Pack) - beyond) % sizeof(Pack) / sizeof(T);
  if (before >= part.count) return {part.count, 0};
  return {before, (part.count - before) * sizeof(T) / sizeof(Pack)};
}

// Calls `packs(offset, count)` once, with a number of packs, and `singles(offset, count)` twice,
// with the numbers of elements before and behind them. A count may be 0; the offsets are bytes from
// where the vector begins.
template <class T, class Singles, class Packs>
RONDO_HOST_DEVICE void in_packs(const PackBorders& borders, const Range& part, Singles singles,
                                Packs packs) {
  const std::uint64_t packed = borders.packs * sizeof(Pack) / sizeof(T);
  const std::uint64_t begin = part.offset + borders.before;
  packs(begin * sizeof(T), borders.packs);
  // A loop, so that the code of singles() is there once.
  RONDO_DO_NOT_UNROLL
  for (int side = 0; side < 2; ++side) {
    const std::uint64_t offset = side == 0 ? part.offset : begin + packed;
    const std::uint64_t count = side == 0 ? borders.before : part.count - borders.before - packed;
    singles(offset * sizeof(T), count);
  }
}

// Reduces these elements of the inputs of `sources`, and writes the results to the outputs of
// `targets`, that of `first_target` first. By every thread of the block.
template <class Reduction, Block B>
RONDO_HOST_DEVICE void fold_elements(B& block, const RankRange& sources, const RankRange& targets,
                                     int first_target, const Range& part) {
  using T = typename Reduction::Element;
  in_packs<T>(
      pack_borders<T>(block, sources, targets, part), part,
      [&](std::uint64_t at, std::uint64_t count) {
        fold_units<Reduction, Single<T>, 4, 1>(block, sources, targets, first_target, at, count,
                                               block.thread());
      },
      [&](std::uint64_t at, std::uint64_t count) {
        // Eight loads of a thread are under way, whether of two inputs or of four. Elements of 8
        // bits would take more registers than there are.
        if constexpr (sizeof(T) > 1) {
          if (sources.count <= 2) {
            fold_units<Reduction, Wide, 2, 4>(block, sources, targets, first_target, at, count,
                                              block.thread());
          } else {
            fold_units<Reduction, Wide, 4, 2>(block, sources, targets, first_target, at, count,
                                              block.thread());
          }
        } else {
          fold_units<Reduction, Wide, 4, 1>(block, sources, targets, first_target, at, count,
                                            block.thread());
        }
      });
}

// Copies these elements of the input of rank `source` to the outputs of `targets`, that of
// `first_target` first. By every thread of the block.
template <class T, Block B>
RONDO_HOST_DEVICE void spread_elements(B& block, int source, const RankRange& targets,
                                       int first_target, const Range& part) {
  const RankBuffers* buffers = block.buffers();
  const std::uint64_t from = buffers[source].in;
  const auto spread = [&]<class Access, int kBatch>(std::uint64_t at, std::uint64_t count) {
    using Unit = decltype(Access::load(nullptr));
    in_batches<kBatch>(
        block, count,
        [&](std::uint64_t i) { return Access::load(pointer(from + at + i * sizeof(Unit))); },
        [&](std::uint64_t i, const Unit& value) {
          int target = first_target;
          for (int t = 0; t < targets.count; ++t) {
            const std::uint64_t to = buffers[target].out;
            if (to != from) Access::store(pointer(to + at + i * sizeof(Unit)), value);
            target = next_of(targets, target);
          }
        },
        block.thread());
  };
  in_packs<T>(
      pack_borders<T>(block, {source, 1}, targets, part), part,
      [&](std::uint64_t at, std::uint64_t count) {
        spread.template operator()<Single<T>, 4>(at, count);
      },
      [&](std::uint64_t at, std::uint64_t count) {
        spread.template operator()<Wide, 8>(at, count);
      });
}

}  // namespace rondo::detail::gpu

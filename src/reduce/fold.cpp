// Folds in vectors, through Google Highway, as vector.cpp does: compiled once for each instruction
// set.

#include "reduce/fold.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/fold.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include "reduce/dispatch.hpp"
#include "reduce/functors.hpp"
#include "reduce/lanes_inl.hpp"
#include "reduce/scalar_fold.hpp"

HWY_BEFORE_NAMESPACE();
namespace rondo::detail::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

struct KeepVector {
  template <class V>
  HWY_INLINE V operator()(V value) const {
    return value;
  }
};
template <class Lane>
struct DivideVectorBy {
  Lane divisor;
  template <class V>
  HWY_INLINE V operator()(V value) const {
    return hn::Div(value, hn::Set(hn::DFromV<V>(), divisor));
  }
};
// Multiplies each operand of an average of 16-bit floats, in f32.
struct MultiplyVectorBy {
  float factor;
  template <class V>
  HWY_INLINE V operator()(V value) const {
    return hn::Mul(value, hn::Set(hn::DFromV<V>(), factor));
  }
};

template <class T>
HWY_INLINE auto load(const std::byte* from) {
  const typename Lanes<T>::Stored tag;
  return hn::LoadU(tag, reinterpret_cast<const hn::TFromD<typename Lanes<T>::Stored>*>(from));
}

// What is done with each operand, with two of them, and with the result.
template <class First, class Op, class Last>
struct Ways {
  First first;
  Op op;
  Last last;
};
template <class First, class Op, class Last>
Ways(First, Op, Last) -> Ways<First, Op, Last>;

// The result for the vector of elements at byte `at`, as it is stored.
template <class T, class First, class Op, class Last>
HWY_INLINE auto folded(const std::byte* const* ins, std::size_t in_count, std::size_t at,
                       First first, Op op, Last last) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    auto pairs = load<T>(ins[0] + at);
    auto even = first(Lanes<T>::even(pairs));
    auto odd = first(Lanes<T>::odd(pairs));
    for (std::size_t k = 1; k < in_count; ++k) {
      pairs = load<T>(ins[k] + at);
      even = op(even, first(Lanes<T>::even(pairs)));
      odd = op(odd, first(Lanes<T>::odd(pairs)));
    }
    return Lanes<T>::joined(last(even), last(odd));
  } else if constexpr (std::is_same_v<T, Float16>) {
    const typename Lanes<T>::Computed computed;
    auto sum = first(hn::PromoteTo(computed, load<T>(ins[0] + at)));
    for (std::size_t k = 1; k < in_count; ++k) {
      sum = op(sum, first(hn::PromoteTo(computed, load<T>(ins[k] + at))));
    }
    return hn::DemoteTo(typename Lanes<T>::Stored{}, last(sum));
  } else {
    auto sum = load<T>(ins[0] + at);
    for (std::size_t k = 1; k < in_count; ++k) sum = op(sum, load<T>(ins[k] + at));
    return last(sum);
  }
}

// The lines that a fold reads and writes are in other cores' caches. Lines that are read anyway are
// not fetched once more to be written: fetching them at once for writing was no faster.
HWY_INLINE void prefetch_ahead(const FoldOperands& operands, std::size_t at, std::size_t bytes,
                               bool in_place) {
  if (at + kReadAheadBytes >= bytes) return;
  for (std::size_t k = 0; k < operands.in_count; ++k) {
    __builtin_prefetch(operands.ins[k] + at + kReadAheadBytes);
  }
  if (in_place) return;
  for (std::size_t j = 0; j < operands.out_count; ++j) {
    prefetch_to_write(operands.outs[j] + at + kWriteAheadBytes);
  }
}

// `kIns`, `kOuts`: the numbers of operands and of outputs, or 0 if they are not known when this is
// compiled. Whole vectors, then single elements.
template <class T, std::size_t kIns, std::size_t kOuts, class VectorWays, class Ways>
HWY_INLINE void fold_vectors(const FoldOperands& operands, std::size_t count,
                             const VectorWays& vector, const Ways& scalar) {
  const typename Lanes<T>::Stored tag;
  using Lane = hn::TFromD<typename Lanes<T>::Stored>;
  const std::size_t elements = hn::Lanes(tag) * sizeof(Lane) / sizeof(T);
  const std::size_t ins = kIns == 0 ? operands.in_count : kIns;
  const std::size_t outs = kOuts == 0 ? operands.out_count : kOuts;
  const bool in_place =
      outs == ins && std::equal(operands.outs, operands.outs + outs, operands.ins);
  // Copies of few pointers stay in registers. The compiler would read those in `operands` again for
  // each vector, since a store might have changed them.
  const std::byte* few_ins[kIns + 1];
  std::byte* few_outs[kOuts + 1];
  std::copy_n(operands.ins, kIns, few_ins);
  std::copy_n(operands.outs, kOuts, few_outs);
  const std::byte* const* from = kIns == 0 ? operands.ins : few_ins;
  std::byte* const* to = kOuts == 0 ? operands.outs : few_outs;
  std::size_t i = 0;
  for (; i + elements <= count; i += elements) {
    const std::size_t at = i * sizeof(T);
    if (at % kLineBytes == 0) prefetch_ahead(operands, at, count * sizeof(T), in_place);
    const auto value = folded<T>(from, ins, at, vector.first, vector.op, vector.last);
    for (std::size_t j = 0; j < outs; ++j) {
      hn::StoreU(value, tag, reinterpret_cast<Lane*>(to[j] + at));
    }
  }
  scalar_fold<T>(operands, i, count, scalar.first, scalar.op, scalar.last);
}

template <class T, class VectorWays, class Ways>
HWY_INLINE void fold(const FoldOperands& operands, std::size_t count, const VectorWays& vector,
                     const Ways& scalar) {
  if constexpr (std::is_same_v<T, Float16> && !kRoundsToF16) {
    scalar_fold<T>(operands, 0, count, scalar.first, scalar.op, scalar.last);
  } else if (operands.in_count == 2 && operands.out_count == 2) {
    fold_vectors<T, 2, 2>(operands, count, vector, scalar);
  } else if (operands.in_count == 4 && operands.out_count == 4) {
    fold_vectors<T, 4, 4>(operands, count, vector, scalar);
  } else if (operands.in_count == 2) {
    fold_vectors<T, 2, 0>(operands, count, vector, scalar);
  } else {
    fold_vectors<T, 0, 0>(operands, count, vector, scalar);
  }
}

template <class T, class VectorOp, class Op>
void fold_by(const FoldOperands& operands, std::size_t count) {
  fold<T>(operands, count, Ways<KeepVector, VectorOp, KeepVector>{},
          Ways<Unchanged, Op, Unchanged>{});
}

// Highway cannot multiply these lanes on every target, so the compiler vectorises the loop.
template <class T>
void fold_products(const FoldOperands& operands, std::size_t count) {
  scalar_fold<T>(operands, 0, count, Unchanged{}, Prod<T>{}, Unchanged{});
}

// Divides the sum by the number of ranks. A sum of bf16 may be more than an f32 holds: so operands
// of 16 bits are first made smaller by a power of two (reduce/average.hpp).
template <class T>
void fold_averages(const FoldOperands& operands, std::size_t count) {
  using Accumulator = AccumulatorOf<T>;
  const auto divisor = static_cast<Accumulator>(operands.average.divisor);
  const DivideVectorBy<Accumulator> divide_vector{divisor};
  const DivideBy<Accumulator> divide{divisor};
  if constexpr (kSumsAsParts<T>) {
    const float scale = operands.average.scale;
    fold<T>(operands, count, Ways{MultiplyVectorBy{scale}, VectorSum{}, divide_vector},
            Ways{MultiplyBy<Accumulator>{scale}, Sum<Accumulator>{}, divide});
  } else {
    fold<T>(operands, count, Ways{KeepVector{}, VectorSum{}, divide_vector},
            Ways{Unchanged{}, Sum<Accumulator>{}, divide});
  }
}

FoldFunction select(DataType type, ReduceOp op) {
  return with_type_and_op(type, op, [](auto type_tag, auto op_tag) -> FoldFunction {
    using T = typename decltype(type_tag)::Type;
    using Accumulator = AccumulatorOf<T>;
    constexpr ReduceOp kOp = decltype(op_tag)::kOp;
    if constexpr (!kHasVectors<T, kOp>) {
      return nullptr;
    } else if constexpr (kOp == ReduceOp::prod && std::is_integral_v<T> && sizeof(T) != 4) {
      return fold_products<T>;
    } else if constexpr (kOp == ReduceOp::prod) {
      return fold_by<T, VectorProd, Prod<Accumulator>>;
    } else if constexpr (kOp == ReduceOp::min) {
      return fold_by<T, VectorMin, Min<Accumulator>>;
    } else if constexpr (kOp == ReduceOp::max) {
      return fold_by<T, VectorMax, Max<Accumulator>>;
    } else if constexpr (kOp == ReduceOp::avg) {
      return fold_averages<T>;
    } else {
      return fold_by<T, VectorSum, Sum<Accumulator>>;
    }
  });
}

}  // namespace
}  // namespace rondo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::detail {

HWY_EXPORT(select);

FoldFunction vector_fold(DataType type, ReduceOp op) {
  const FoldFunction vectors = HWY_DYNAMIC_DISPATCH(select)(type, op);
  return vectors != nullptr ? vectors : reference_fold(type, op);
}

}  // namespace rondo::detail
#endif

// Reductions whose bits depend on the order of operations and on where 16-bit floats are rounded:
// what they are in rank order, rounded once.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "bench/exact_values.hpp"

namespace rondo::test {

// With zeros of both signs, for min and max.
template <class T>
T ordered_input(ReduceOp op, int rank, std::size_t i) {
  if (op == ReduceOp::min || op == ReduceOp::max) {
    return exact::from_double<T>(
        exact::mix(i * 31 + static_cast<std::size_t>(rank)) % 2 == 0 ? 0.0 : -0.0);
  }
  const double value = 1.0 / (3 + rank * 7 + static_cast<int>(i % 10'007));
  return exact::from_double<T>(op == ReduceOp::prod ? 1 + value : value);
}

template <class T>
std::vector<T> ordered_result(ReduceOp op, int ranks, std::size_t count) {
  using Sum = std::conditional_t<sizeof(T) == 2, float, T>;
  std::vector<T> results(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto sum = static_cast<Sum>(ordered_input<T>(op, 0, i));
    for (int rank = 1; rank < ranks; ++rank) {
      const auto next = static_cast<Sum>(ordered_input<T>(op, rank, i));
      if (op == ReduceOp::sum || op == ReduceOp::avg) sum += next;
      if (op == ReduceOp::prod) sum *= next;
      if (op == ReduceOp::min) sum = sum < next ? sum : next;
      if (op == ReduceOp::max) sum = sum > next ? sum : next;
    }
    if (op == ReduceOp::avg) sum /= static_cast<Sum>(ranks);
    results[i] = static_cast<T>(sum);
  }
  return results;
}

template <class T>
void expect_bits(std::span<const T> actual, std::span<const T> expected, const char* what,
                 ReduceOp op) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits are what is compared
    ASSERT_EQ(std::memcmp(&actual[i], &expected[i], sizeof(T)), 0)
        << what << " of " << name(kDataTypeOf<T>) << ", " << name(op) << ", element " << i << " of "
        << actual.size();
  }
}

// `memory`: for the whole vector; if it is empty, the buffer is in ordinary memory.
template <class T>
void expect_rank_order(Communicator& comm, std::size_t count, ReduceOp op, CallOptions options,
                       std::span<T> memory = {}) {
  const std::vector<T> expected = ordered_result<T>(op, comm.size(), count);
  std::vector<T> ordinary(memory.empty() ? count : 0);
  const std::span<T> data = memory.empty() ? std::span(ordinary) : memory.first(count);
  const auto refill = [&] {
    for (std::size_t i = 0; i < count; ++i) data[i] = ordered_input<T>(op, comm.rank(), i);
  };
  refill();
  comm.all_reduce(data, op, options);
  expect_bits<T>(data, expected, "all_reduce", op);
  refill();
  comm.reduce_scatter(data, op, options);
  const Range own = chunk_range(count, static_cast<std::uint64_t>(comm.size()),
                                static_cast<std::uint64_t>(comm.rank()));
  expect_bits<T>(data.subspan(own.offset, own.count),
                 std::span(expected).subspan(own.offset, own.count), "reduce_scatter", op);
  for (int root = 0; root < comm.size(); ++root) {
    refill();
    comm.reduce(data, root, op, options);
    if (comm.rank() == root) expect_bits<T>(data, expected, "reduce", op);
  }
}

// Calls `visit.template operator()<T>(op)` for each floating type and reduction.
template <class Visitor>
void for_each_rounded(Visitor&& visit) {
  for (const ReduceOp op :
       {ReduceOp::sum, ReduceOp::avg, ReduceOp::prod, ReduceOp::min, ReduceOp::max}) {
    visit.template operator()<float>(op);
    visit.template operator()<double>(op);
    visit.template operator()<Float16>(op);
    visit.template operator()<BFloat16>(op);
  }
}

}  // namespace rondo::test

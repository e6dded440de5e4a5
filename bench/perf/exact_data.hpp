// One rank's exact inputs of a collective, and what must come out of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <rondo/chunk.hpp>
#include <span>
#include <vector>

#include "bench/exact_values.hpp"
#include "bench/perf/options.hpp"

namespace rondo::perf {

template <class T>
class ExactData {
 public:
  ExactData(int rank, int size, const Options& options, std::uint64_t count)
      : rank_(rank),
        op_(options.op),
        own_(
            chunk_range(count, static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(rank))),
        input_(count),
        expected_(count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      input_[i] = exact::input<T>(options.redop, rank, size, i);
      expected_[i] = reduces() ? exact::result<T>(options.redop, size, i)
                               : exact::input<T>(options.redop, 0, size, i);
    }
    if (op_ != Collective::all_gather) return;
    // The input holds only the rank's own chunk; the rest is 0.
    std::fill(input_.begin(), input_.end(), T{});
    const auto begin = static_cast<std::ptrdiff_t>(own_.offset);
    std::copy_n(expected_.begin() + begin, own_.count, input_.begin() + begin);
  }

  // The whole vector, as it is before the call.
  [[nodiscard]] const std::vector<T>& input() const { return input_; }

  // The call on whole vectors at `in` and `out`, in host or device memory.
  [[nodiscard]] Call call(const Options& options, T* in, T* out) const {
    Call result;
    result.collective = op_;
    result.count = input_.size();
    result.type = kDataTypeOf<T>;
    result.op = options.redop;
    result.in = op_ == Collective::all_gather ? in + own_.offset : in;
    result.out = op_ == Collective::reduce_scatter ? out + own_.offset : out;
    return result;
  }

  // The number of elements that differ from what the call must leave there.
  [[nodiscard]] std::uint64_t wrong(std::span<const T> result) const {
    if (op_ == Collective::reduce && rank_ != 0) return 0;
    const Range checked = op_ == Collective::reduce_scatter ? own_ : Range{0, expected_.size()};
    std::uint64_t count = 0;
    for (std::uint64_t i = checked.offset; i < checked.offset + checked.count; ++i) {
      count += result[i] == expected_[i] ? 0 : 1;
    }
    return count;
  }

 private:
  [[nodiscard]] bool reduces() const {
    return op_ != Collective::all_gather && op_ != Collective::broadcast;
  }

  int rank_;
  Collective op_;
  Range own_;
  std::vector<T> input_;
  std::vector<T> expected_;
};

}  // namespace rondo::perf

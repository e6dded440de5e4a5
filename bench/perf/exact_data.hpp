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
        size_(size),
        op_(options.op),
        own_(
            chunk_range(count, static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(rank))),
        input_(count),
        expected_(count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      input_[i] = exact::input<T>(options.redop, rank, size, i);
      expected_[i] = expected(options, size, i);
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
    result.in = has_own_input() ? in + own_.offset : in;
    result.out = has_own_output() ? out + own_.offset : out;
    // A shift round the ring; for `send`, between ranks 0 and 1, in which the others take no part.
    const int other = rank_ == 0 ? 1 : 0;
    result.to = op_ == Collective::send ? other : (rank_ + 1) % size_;
    result.from = op_ == Collective::send ? other : (rank_ + size_ - 1) % size_;
    result.received = result.count;
    return result;
  }

  // The number of elements that differ from what the call must leave there.
  [[nodiscard]] std::uint64_t wrong(std::span<const T> result) const {
    const bool root_only = op_ == Collective::reduce || op_ == Collective::gather;
    if ((root_only && rank_ != 0) || (op_ == Collective::send && rank_ > 1)) return 0;
    const Range checked = has_own_output() ? own_ : Range{0, expected_.size()};
    std::uint64_t count = 0;
    for (std::uint64_t i = checked.offset; i < checked.offset + checked.count; ++i) {
      count += result[i] == expected_[i] ? 0 : 1;
    }
    return count;
  }

 private:
  [[nodiscard]] bool has_own_input() const {
    return op_ == Collective::all_gather || op_ == Collective::gather;
  }
  [[nodiscard]] bool has_own_output() const {
    return op_ == Collective::reduce_scatter || op_ == Collective::scatter;
  }

  // Element i of the result.
  [[nodiscard]] T expected(const Options& options, int size, std::uint64_t i) const {
    const auto input = [&](int rank, std::uint64_t element) {
      return exact::input<T>(options.redop, rank, size, element);
    };
    switch (op_) {
      case Collective::all_gather:
      case Collective::broadcast:
      case Collective::scatter:
        return input(0, i);
      case Collective::gather:
        return input(static_cast<int>(i / own_.count), i);
      case Collective::all_to_all:
        return input(static_cast<int>(i / own_.count), own_.offset + i % own_.count);
      case Collective::sendrecv:
        return input((rank_ + size - 1) % size, i);
      case Collective::send:
        return input(rank_ == 0 ? 1 : 0, i);
      default:
        return exact::result<T>(options.redop, size, i);
    }
  }

  int rank_;
  int size_;
  Collective op_;
  Range own_;
  std::vector<T> input_;
  std::vector<T> expected_;
};

}  // namespace rondo::perf

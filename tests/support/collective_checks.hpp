// Every collective against exact answers; the same checks for ranks that are threads and processes.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "bench/exact_values.hpp"

namespace rondo::test {

// Where the buffers of checked calls are: in ordinary memory, or in a registered block. Buffers
// begin at places that are aligned to nothing but their elements.
class CheckMemory {
 public:
  CheckMemory() = default;
  explicit CheckMemory(std::span<std::uint8_t> registered) : registered_(registered) {}

  template <class T>
  std::span<T> take(std::size_t count, T value) {
    std::byte* begin = nullptr;
    const std::size_t bytes = count * sizeof(T);
    if (registered_.empty()) {
      ordinary_.emplace_back(bytes + sizeof(T));
      begin = ordinary_.back().data();
    } else {
      used_ = (used_ / sizeof(T) + 2) * sizeof(T);
      if (used_ + bytes > registered_.size()) throw std::length_error("too little test memory");
      begin = reinterpret_cast<std::byte*>(registered_.data() + used_);
      used_ += bytes;
    }
    const std::span<T> elements(reinterpret_cast<T*>(begin), count);
    std::fill(elements.begin(), elements.end(), value);
    return elements;
  }
  template <class T>
  std::span<T> copy_of(std::span<const T> values) {
    const std::span<T> copy = take(values.size(), T{});
    std::copy(values.begin(), values.end(), copy.begin());
    return copy;
  }
  void clear() {
    ordinary_.clear();
    used_ = 0;
  }

 private:
  std::span<std::uint8_t> registered_;
  std::size_t used_ = 0;
  std::vector<std::vector<std::byte>> ordinary_;
};

// Elements in a row, which bools of a vector are not.
template <class T>
class Elements {
 public:
  explicit Elements(std::size_t count)
      : memory_(std::make_unique<T[]>(count)), elements_(memory_.get(), count) {}
  T& operator[](std::size_t i) { return elements_[i]; }
  // NOLINTNEXTLINE(google-explicit-constructor,misc-explicit-constructor): as a vector does
  operator std::span<const T>() const { return elements_; }

 private:
  std::unique_ptr<T[]> memory_;  // NOLINT(modernize-avoid-c-arrays)
  std::span<T> elements_;
};

template <class T>
class CollectiveCheck {
 public:
  CollectiveCheck(Communicator& comm, std::size_t count, ReduceOp op, Algorithm algorithm,
                  CheckMemory memory = {})
      : comm_(comm),
        count_(count),
        op_(op),
        own_(chunk_range(count, size(), rank())),
        memory_(std::move(memory)),
        in_(count),
        reduced_(count) {
    options_.algorithm = algorithm;
    for (std::size_t i = 0; i < count; ++i) {
      in_[i] = exact::input<T>(op, comm.rank(), comm.size(), i);
      reduced_[i] = exact::result<T>(op, comm.size(), i);
    }
  }

  void all() {
    all_reduce();
    all_but_all_reduce();
    comm_.barrier(options_);
  }

  // What `tree` carries.
  void all_but_all_reduce() {
    reduce_scatter();
    all_gather();
    for (int root = 0; root < comm_.size(); ++root) {
      broadcast(root);
      reduce(root);
    }
  }

  void all_reduce() {
    memory_.clear();
    const std::span<const T> in = memory_.template copy_of<T>(in_);
    const std::span<T> out = memory_.take(count_, sentinel());
    comm_.all_reduce(in, out, op_, options_);
    expect_equal(out, reduced_, "all_reduce out of place");
    expect_equal(in, in_, "the input of all_reduce out of place");
    const std::span<T> buffer = memory_.template copy_of<T>(in_);
    comm_.all_reduce(buffer, op_, options_);
    expect_equal(buffer, reduced_, "all_reduce in place");
  }

  void reduce_scatter() {
    memory_.clear();
    const std::span<T> out = memory_.take(own_.count, sentinel());
    const std::span<T> buffer = memory_.template copy_of<T>(in_);
    comm_.reduce_scatter(buffer, out, op_, options_);
    expect_equal(out, part(reduced_), "reduce_scatter out of place");
    expect_equal(buffer, in_, "the input of reduce_scatter out of place");
    comm_.reduce_scatter(buffer, op_, options_);
    expect_equal(part(buffer), part(reduced_), "reduce_scatter in place");
  }

  void all_gather() {
    memory_.clear();
    const std::span<T> mine = memory_.copy_of(part(reduced_));
    const std::span<T> out = memory_.take(count_, sentinel());
    comm_.all_gather(mine, out, options_);
    expect_equal(out, reduced_, "all_gather out of place");
    const std::span<T> buffer = memory_.take(count_, sentinel());
    std::copy(mine.begin(), mine.end(), buffer.begin() + static_cast<std::ptrdiff_t>(own_.offset));
    comm_.all_gather(buffer, options_);
    expect_equal(buffer, reduced_, "all_gather in place");
  }

  void broadcast(int root) {
    memory_.clear();
    const bool is_root = comm_.rank() == root;
    const std::span<T> buffer =
        is_root ? memory_.template copy_of<T>(reduced_) : memory_.take(count_, sentinel());
    comm_.broadcast(buffer, root, options_);
    expect_equal(buffer, reduced_, "broadcast from " + std::to_string(root));
    const std::span<T> in = is_root ? memory_.template copy_of<T>(reduced_) : std::span<T>();
    const std::span<T> out = memory_.take(count_, sentinel());
    comm_.broadcast(in, out, root, options_);
    expect_equal(out, reduced_, "broadcast out of place from " + std::to_string(root));
  }

  void reduce(int root) {
    memory_.clear();
    const bool is_root = comm_.rank() == root;
    const std::span<T> out = is_root ? memory_.take(count_, sentinel()) : std::span<T>();
    const std::span<T> buffer = memory_.template copy_of<T>(in_);
    comm_.reduce(buffer, out, root, op_, options_);
    if (is_root) expect_equal(out, reduced_, "reduce to " + std::to_string(root));
    comm_.reduce(buffer, root, op_, options_);
    expect_equal(buffer, std::span<const T>(is_root ? reduced_ : in_),
                 "reduce in place to " + std::to_string(root));
  }

 private:
  [[nodiscard]] std::uint64_t size() const { return static_cast<std::uint64_t>(comm_.size()); }
  [[nodiscard]] std::uint64_t rank() const { return static_cast<std::uint64_t>(comm_.rank()); }
  static T sentinel() { return exact::from_double<T>(77); }

  [[nodiscard]] std::span<const T> part(std::span<const T> whole) const {
    return whole.subspan(own_.offset, own_.count);
  }

  void expect_equal(std::span<const T> actual, std::span<const T> expected,
                    const std::string& what) const {
    ASSERT_EQ(actual.size(), expected.size());
    std::size_t wrong = 0;
    std::size_t first = 0;
    for (std::size_t i = actual.size(); i-- > 0;) {
      if (actual[i] == expected[i]) continue;
      ++wrong;
      first = i;
    }
    EXPECT_EQ(wrong, 0U) << what << " of " << count_ << " x " << name(kDataTypeOf<T>) << ", "
                         << name(op_) << ", " << name(*options_.algorithm) << ", rank "
                         << comm_.rank() << " of " << comm_.size() << ": first wrong element "
                         << first;
  }

  Communicator& comm_;
  std::size_t count_;
  ReduceOp op_;
  Range own_;
  CallOptions options_;
  CheckMemory memory_;
  Elements<T> in_;
  Elements<T> reduced_;
};

// The types and reductions that are plain loops on host memory: calls `visit.template
// operator()<T>(op)` for each such pair that is supported.
template <class Visitor>
void for_each_rare_type_and_op(Visitor&& visit) {
  const auto ops = [&]<class T>(int first) {
    for (int number = first; number < kReduceOpCount; ++number) {
      const auto op = static_cast<ReduceOp>(number);
      if (supports(kDataTypeOf<T>, op)) visit.template operator()<T>(op);
    }
  };
  ops.template operator()<std::int16_t>(0);
  ops.template operator()<std::uint16_t>(0);
  ops.template operator()<std::complex<float>>(0);
  ops.template operator()<std::complex<double>>(0);
  ops.template operator()<bool>(0);
  const int rare = static_cast<int>(ReduceOp::bit_and);
  ops.template operator()<std::int8_t>(rare);
  ops.template operator()<std::uint32_t>(rare);
  ops.template operator()<std::int64_t>(rare);
}

// Calls `visit.template operator()<T>(op)` for every other pair.
template <class Visitor>
void for_each_type_and_op(Visitor&& visit) {
  const auto ops = [&]<class T>() {
    for (const ReduceOp op :
         {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max, ReduceOp::avg}) {
      if (supports(kDataTypeOf<T>, op)) visit.template operator()<T>(op);
    }
  };
  ops.template operator()<float>();
  ops.template operator()<double>();
  ops.template operator()<Float16>();
  ops.template operator()<BFloat16>();
  ops.template operator()<std::int8_t>();
  ops.template operator()<std::uint8_t>();
  ops.template operator()<std::int32_t>();
  ops.template operator()<std::uint32_t>();
  ops.template operator()<std::int64_t>();
  ops.template operator()<std::uint64_t>();
}

}  // namespace rondo::test

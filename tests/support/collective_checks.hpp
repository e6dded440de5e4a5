// Every collective against exact answers; the same checks for ranks that are threads and processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "bench/exact_values.hpp"

namespace rondo::test {

template <class T>
class CollectiveCheck {
 public:
  CollectiveCheck(Communicator& comm, std::size_t count, ReduceOp op, Algorithm algorithm)
      : comm_(comm), count_(count), op_(op), own_(chunk_range(count, size(), rank())) {
    options_.algorithm = algorithm;
    for (std::size_t i = 0; i < count; ++i) {
      in_.push_back(exact::input<T>(op, comm.rank(), comm.size(), i));
      reduced_.push_back(exact::result<T>(op, comm.size(), i));
    }
  }

  void all() {
    all_reduce();
    reduce_scatter();
    all_gather();
    for (int root = 0; root < comm_.size(); ++root) {
      broadcast(root);
      reduce(root);
    }
    comm_.barrier(options_);
  }

  void all_reduce() {
    std::vector<T> out(count_, sentinel());
    const std::vector<T> in = in_;
    comm_.all_reduce(in, out, op_, options_);
    expect_equal(out, reduced_, "all_reduce out of place");
    EXPECT_TRUE(in == in_) << "all_reduce changed its input";
    std::vector<T> buffer = in_;
    comm_.all_reduce(buffer, op_, options_);
    expect_equal(buffer, reduced_, "all_reduce in place");
  }

  void reduce_scatter() {
    std::vector<T> out(own_.count, sentinel());
    comm_.reduce_scatter(in_, out, op_, options_);
    expect_equal(out, part(reduced_), "reduce_scatter out of place");
    std::vector<T> buffer = in_;
    comm_.reduce_scatter(buffer, op_, options_);
    expect_equal(part(buffer), part(reduced_), "reduce_scatter in place");
  }

  void all_gather() {
    const std::vector<T> mine = part(reduced_);
    std::vector<T> out(count_, sentinel());
    comm_.all_gather(mine, out, options_);
    expect_equal(out, reduced_, "all_gather out of place");
    std::vector<T> buffer(count_, sentinel());
    std::copy(mine.begin(), mine.end(), buffer.begin() + static_cast<std::ptrdiff_t>(own_.offset));
    comm_.all_gather(buffer, options_);
    expect_equal(buffer, reduced_, "all_gather in place");
  }

  void broadcast(int root) {
    std::vector<T> buffer(count_, sentinel());
    if (comm_.rank() == root) buffer = reduced_;
    comm_.broadcast(buffer, root, options_);
    expect_equal(buffer, reduced_, "broadcast from " + std::to_string(root));
    std::vector<T> in;
    if (comm_.rank() == root) in = reduced_;
    std::vector<T> out(count_, sentinel());
    comm_.broadcast(in, out, root, options_);
    expect_equal(out, reduced_, "broadcast out of place from " + std::to_string(root));
  }

  void reduce(int root) {
    std::vector<T> out;
    if (comm_.rank() == root) out.assign(count_, sentinel());
    comm_.reduce(in_, out, root, op_, options_);
    if (comm_.rank() == root) expect_equal(out, reduced_, "reduce to " + std::to_string(root));
    std::vector<T> buffer = in_;
    comm_.reduce(buffer, root, op_, options_);
    expect_equal(buffer, comm_.rank() == root ? reduced_ : in_,
                 "reduce in place to " + std::to_string(root));
  }

 private:
  [[nodiscard]] std::uint64_t size() const { return static_cast<std::uint64_t>(comm_.size()); }
  [[nodiscard]] std::uint64_t rank() const { return static_cast<std::uint64_t>(comm_.rank()); }
  static T sentinel() { return exact::from_double<T>(77); }

  [[nodiscard]] std::vector<T> part(const std::vector<T>& whole) const {
    const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(own_.offset);
    return {begin, begin + static_cast<std::ptrdiff_t>(own_.count)};
  }

  void expect_equal(const std::vector<T>& actual, const std::vector<T>& expected,
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
  std::vector<T> in_;
  std::vector<T> reduced_;
};

// Calls `visit.template operator()<T>(op)` for every supported pair of type and reduction.
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

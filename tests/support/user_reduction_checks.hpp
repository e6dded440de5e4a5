// Reductions by functions of the program, against exact answers; the same checks for ranks that are
// threads and processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "bench/exact_values.hpp"

namespace rondo::test {

// Elements of any size. In one that does not commute, two bytes (a, b) are the function
// x → a·x + b modulo 256, and `op` is "after": (a, b) op (c, d) = (a·c, a·d + b). In one that
// commutes, each byte is added up.
class UserReductionCheck {
 public:
  UserReductionCheck(Communicator& comm, std::size_t count, std::size_t element_bytes,
                     bool commutative, std::optional<Algorithm> algorithm = {})
      : comm_(comm), count_(count), element_(element_bytes) {
    options_.algorithm = algorithm;
    reduction_.element_bytes = element_bytes;
    reduction_.commutative = commutative;
    reduction_.combine = [=](const void* in, void* in_out, std::size_t elems) {
      combine(commutative, static_cast<const std::uint8_t*>(in), static_cast<std::uint8_t*>(in_out),
              elems * element_bytes, element_bytes);
    };
    in_ = input(comm.rank());
    reduced_ = input(comm.size() - 1);
    for (int rank = comm.size() - 2; rank >= 0; --rank) {
      combine(commutative, input(rank).data(), reduced_.data(), reduced_.size(), element_bytes);
    }
  }

  void all() {
    all_reduce();
    for (int root = 0; root < comm_.size(); ++root) reduce(root);
    reduce_scatter();
    reduce_scatter_v();
  }

  void all_reduce() {
    std::vector<std::uint8_t> out(in_.size(), 77);
    comm_.all_reduce(in_, out, reduction_, options_);
    expect(out, reduced_, "all_reduce");
    std::vector<std::uint8_t> buffer = in_;
    comm_.all_reduce_async(buffer, reduction_, options_).wait();
    expect(buffer, reduced_, "all_reduce in place");
  }

  void reduce(int root) {
    const bool is_root = comm_.rank() == root;
    std::vector<std::uint8_t> out(is_root ? in_.size() : 0, 77);
    comm_.reduce(in_, out, root, reduction_, options_);
    if (is_root) expect(out, reduced_, "reduce to " + std::to_string(root));
  }

  void reduce_scatter() {
    const auto size = static_cast<std::uint64_t>(comm_.size());
    const Range own = chunk_range(count_, size, static_cast<std::uint64_t>(comm_.rank()));
    std::vector<std::uint8_t> out(own.count * element_, 77);
    comm_.reduce_scatter(in_, out, reduction_, options_);
    expect(out, part(own), "reduce_scatter");
  }

  // Rank 0 gets all that is left when each other rank has got one more than the one before it.
  void reduce_scatter_v() {
    const auto size = static_cast<std::size_t>(comm_.size());
    std::vector<std::size_t> counts(size, 0);
    std::size_t left = count_;
    for (std::size_t rank = 1; rank < size && left > rank; ++rank) {
      counts[rank] = rank;
      left -= rank;
    }
    counts[0] = left;
    const auto rank = static_cast<std::ptrdiff_t>(comm_.rank());
    const Range own{std::reduce(counts.begin(), counts.begin() + rank, std::size_t{0}),
                    counts[static_cast<std::size_t>(rank)]};
    std::vector<std::uint8_t> out(own.count * element_, 77);
    if (options_.algorithm == Algorithm::direct) return;  // which does not carry counts
    comm_.reduce_scatter_v(in_, out, counts, reduction_, options_);
    expect(out, part(own), "reduce_scatter_v");
  }

 private:
  static void combine(bool commutative, const std::uint8_t* in, std::uint8_t* in_out,
                      std::size_t bytes, std::size_t element) {
    for (std::size_t at = 0; at < bytes; at += element) {
      for (std::size_t i = at; i < at + element; ++i) {
        const bool pairs = !commutative && i + 1 < at + element;
        if (!pairs) {
          in_out[i] = static_cast<std::uint8_t>(in[i] + in_out[i]);
          continue;
        }
        in_out[i + 1] = static_cast<std::uint8_t>(in[i] * in_out[i + 1] + in[i + 1]);
        in_out[i] = static_cast<std::uint8_t>(in[i] * in_out[i]);
        ++i;
      }
    }
  }

  // Odd factors, so that no product forgets them.
  [[nodiscard]] std::vector<std::uint8_t> input(int rank) const {
    std::vector<std::uint8_t> bytes(count_ * element_);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::uint64_t mixed = exact::mix(i * 64 + static_cast<std::uint64_t>(rank));
      bytes[i] = static_cast<std::uint8_t>(mixed | (i % element_ % 2 == 0 ? 1U : 0U));
    }
    return bytes;
  }
  [[nodiscard]] std::vector<std::uint8_t> part(const Range& elements) const {
    const auto begin = reduced_.begin() + static_cast<std::ptrdiff_t>(elements.offset * element_);
    return {begin, begin + static_cast<std::ptrdiff_t>(elements.count * element_)};
  }
  void expect(const std::vector<std::uint8_t>& actual, const std::vector<std::uint8_t>& expected,
              const std::string& what) const {
    EXPECT_TRUE(actual == expected)
        << what << " of " << count_ << " elements of " << element_ << " bytes, "
        << (reduction_.commutative ? "commutative" : "in rank order") << ", rank " << comm_.rank()
        << " of " << comm_.size() << ", "
        << (options_.algorithm ? name(*options_.algorithm) : "no algorithm named");
  }

  Communicator& comm_;
  std::size_t count_;
  std::size_t element_;
  CallOptions options_;
  UserReduction reduction_;
  std::vector<std::uint8_t> in_;
  std::vector<std::uint8_t> reduced_;
};

// Elements that fit slots of 256 bytes, and such that do not.
inline void check_user_reductions(Communicator& comm, std::optional<Algorithm> algorithm = {}) {
  for (const std::size_t element : {1U, 8U, 24U, 100U}) {
    for (const std::size_t count : {0U, 5U, 301U}) {
      for (const bool commutative : {true, false}) {
        UserReductionCheck(comm, count, element, commutative, algorithm).all();
      }
    }
  }
}
inline void check_large_elements(Communicator& comm) {
  for (const std::size_t element : {300U, 9'001U, 200'000U}) {
    for (const std::size_t count : {1U, 7U}) {
      for (const bool commutative : {true, false}) {
        UserReductionCheck(comm, count, element, commutative).all();
      }
    }
  }
}

}  // namespace rondo::test

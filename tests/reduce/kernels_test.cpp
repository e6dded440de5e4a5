// The vector kernels against the plain reference, on every instruction set that this processor has.

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "reduce/dispatch.hpp"
#include "reduce/fold.hpp"
#include "reduce/kernels.hpp"
#include "tests/support/collective_checks.hpp"

namespace rondo::detail {
namespace {

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(
        static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(value)));
  }
}

// Compares bits. Any two NaNs are the same where an operation computes them; min and max return one
// of their operands.
template <class T>
bool same(T a, T b, ReduceOp op) {
  const bool picks = op == ReduceOp::min || op == ReduceOp::max;
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits are what is compared
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (!picks && is_nan(a) && is_nan(b));
}

// Random bits, mixed with special values: zeros, infinities, NaN, and the limits of f16 and bf16.
template <class T>
std::vector<T> operands(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    const std::uint64_t bits = random();
    std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
    if constexpr (!std::is_integral_v<T>) {
      const double kSpecial[] = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.5,
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN(),
                                 65504.0,
                                 65519.9,
                                 65520.0,
                                 0x1p-24,
                                 0x1p-25,
                                 1e-40,
                                 3e38};
      if (bits % 3 == 0)
        value = exact::from_double<T>(kSpecial[(bits >> 8U) % std::size(kSpecial)]);
    }
  }
  return values;
}

template <class T>
void compare(ReduceOp op, std::size_t count, std::size_t offset, bool two_outputs) {
  SCOPED_TRACE(::testing::Message() << name(kDataTypeOf<T>) << " " << name(op) << " count " << count
                                    << " offset " << offset << " also " << two_outputs);
  const std::vector<T> a = operands<T>(count + offset, 1);
  const std::vector<T> b = operands<T>(count + offset, 2);
  const ReduceKernel kernels[] = {vector_kernel(kDataTypeOf<T>, op),
                                  reference_kernel(kDataTypeOf<T>, op)};
  for (const bool finish : {false, true}) {
    std::vector<T> out[2];
    std::vector<T> also[2];
    for (int k = 0; k < 2; ++k) {
      out[k] = b;  // in place over one operand, at an odd offset
      also[k].assign(count + offset, T{});
      const auto bytes = [&](std::vector<T>& v) {
        return reinterpret_cast<std::byte*>(v.data() + offset);
      };
      const ReduceFunction function = finish ? kernels[k].finish : kernels[k].combine;
      function(bytes(out[k]), two_outputs ? bytes(also[k]) : nullptr,
               reinterpret_cast<const std::byte*>(a.data() + offset), bytes(out[k]), count,
               {0.5F, 1, 3});
    }
    for (std::size_t i = 0; i < count + offset; ++i) {
      ASSERT_TRUE(same(out[0][i], out[1][i], op)) << "element " << i << ", finish " << finish;
      ASSERT_TRUE(same(also[0][i], also[1][i], op)) << "second output, element " << i;
    }
  }
}

// A fold of `operands` vectors: in place over all of them, or in place over the second and to a
// buffer of its own.
template <class T>
void compare_folds(ReduceOp op, std::size_t operands_count, std::size_t count, std::size_t offset,
                   bool over_all) {
  SCOPED_TRACE(::testing::Message()
               << name(kDataTypeOf<T>) << " " << name(op) << " of " << operands_count << ", count "
               << count << " offset " << offset << (over_all ? ", over all" : ""));
  std::vector<std::vector<T>> results[2];
  const FoldFunction folds[] = {vector_fold(kDataTypeOf<T>, op),
                                reference_fold(kDataTypeOf<T>, op)};
  for (int k = 0; k < 2; ++k) {
    std::vector<std::vector<T>> buffers;
    std::vector<const std::byte*> ins;
    for (unsigned i = 0; i < operands_count; ++i) {
      buffers.push_back(operands<T>(count + offset, i + 1));
    }
    buffers.emplace_back(count + offset);
    const auto bytes = [&](std::vector<T>& v) {
      return reinterpret_cast<std::byte*>(v.data() + offset);
    };
    for (std::size_t i = 0; i < operands_count; ++i) ins.push_back(bytes(buffers[i]));
    std::vector<std::byte*> outs;
    for (std::size_t i = 0; over_all && i < operands_count; ++i) outs.push_back(bytes(buffers[i]));
    if (!over_all) outs = {bytes(buffers[operands_count > 1 ? 1 : 0]), bytes(buffers.back())};
    folds[k]({outs.data(), outs.size(), ins.data(), operands_count,
              average_of(kDataTypeOf<T>, static_cast<int>(operands_count))},
             count);
    results[k] = buffers;
  }
  for (std::size_t buffer = 0; buffer < results[0].size(); ++buffer) {
    for (std::size_t i = 0; i < count + offset; ++i) {
      ASSERT_TRUE(same(results[0][buffer][i], results[1][buffer][i], op))
          << "buffer " << buffer << ", element " << i;
    }
  }
}

class VectorKernels : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

TEST_P(VectorKernels, AgreeWithTheReference) {
  test::for_each_type_and_op([&]<class T>(ReduceOp op) {
    for (const std::size_t count : {0U, 1U, 3U, 15U, 16U, 17U, 63U, 64U, 65U, 1000U}) {
      for (const std::size_t offset : {0U, 1U}) {
        compare<T>(op, count, offset, false);
        compare<T>(op, count, offset, true);
      }
    }
  });
}

// As T: a quiet NaN, one that signals, and a number.
template <class T>
struct Special {
  T quiet;
  T signalling;
  T number;
};
template <class T>
Special<T> special() {
  if constexpr (std::is_same_v<T, Float16>) {
    return {T::from_bits(0x7E21), T::from_bits(0x7D21), T(2.5F)};
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return {T::from_bits(0x7FE1), T::from_bits(0x7FA1), T(2.5F)};
  } else {
    return {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::signaling_NaN(), T(2.5)};
  }
}

// A NaN in either operand wins at every position of a SIMD vector, and in the tail after the last
// full one.
template <class T>
void expect_nan_wins(ReduceOp op, T nan, T number) {
  constexpr std::size_t kCount = 71;
  for (const ReduceKernel& kernel :
       {vector_kernel(kDataTypeOf<T>, op), reference_kernel(kDataTypeOf<T>, op)}) {
    for (const bool first : {true, false}) {
      const std::vector<T> a(kCount, first ? nan : number);
      const std::vector<T> b(kCount, first ? number : nan);
      std::vector<T> out(kCount);
      kernel.combine(reinterpret_cast<std::byte*>(out.data()), nullptr,
                     reinterpret_cast<const std::byte*>(a.data()),
                     reinterpret_cast<const std::byte*>(b.data()), kCount, {0.5F, 0.5F, 2});
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_TRUE(is_nan(out[i])) << name(kDataTypeOf<T>) << " " << name(op) << ", element " << i;
        ASSERT_TRUE(same(out[i], out[0], op)) << "vector and tail differ at " << i;
        if constexpr (sizeof(T) == 2) {
          constexpr int kQuiet = std::is_same_v<T, Float16> ? 0x200 : 0x40;
          ASSERT_NE(out[i].bits & kQuiet, 0) << "still signals";
        }
      }
    }
  }
}

TEST_P(VectorKernels, FoldsAgreeWithTheReference) {
  test::for_each_type_and_op([&]<class T>(ReduceOp op) {
    for (const std::size_t operands_count : {1U, 2U, 3U, 4U, 5U}) {
      for (const std::size_t count : {0U, 1U, 15U, 16U, 65U, 700U}) {
        for (const std::size_t offset : {0U, 1U}) {
          compare_folds<T>(op, operands_count, count, offset, false);
          compare_folds<T>(op, operands_count, count, offset, true);
        }
      }
    }
  });
}

TEST_P(VectorKernels, NanWinsInEveryOperation) {
  test::for_each_type_and_op([]<class T>(ReduceOp op) {
    if constexpr (!std::is_integral_v<T>) {
      const Special<T> of = special<T>();
      expect_nan_wins(op, of.quiet, of.number);
      expect_nan_wins(op, of.signalling, of.number);
    }
  });
}

TEST_P(VectorKernels, Copy) {
  const CopyKernel copy = vector_copy();
  std::vector<std::uint8_t> from(10000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i % 251);
  for (const auto function : {copy.cached, copy.non_temporal}) {
    for (const std::size_t bytes : {0U, 1U, 63U, 64U, 65U, 200U, 4096U, 9001U}) {
      for (const std::size_t offset : {0U, 1U, 16U, 63U}) {
        std::vector<std::uint8_t> to(from.size() + 64, 255);
        function(reinterpret_cast<std::byte*>(to.data() + offset),
                 reinterpret_cast<const std::byte*>(from.data() + 7), bytes);
        for (std::size_t i = 0; i < to.size(); ++i) {
          const bool copied = i >= offset && i < offset + bytes;
          ASSERT_EQ(to[i], copied ? from[i - offset + 7] : 255)
              << "byte " << i << " of " << bytes << " to offset " << offset;
        }
      }
    }
  }
}

// A thread that sees the flag also sees the non-temporal stores that were made before the flag was
// set.
TEST_P(VectorKernels, WhatIsStreamedComesBeforeWhatFollows) {
  constexpr std::size_t kBytes = 2048;
  constexpr std::uint8_t kRounds = 250;
  const CopyKernel copy = vector_copy();
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<std::byte> memory(kBytes);
    std::atomic<int> handed_over = 0;
    std::atomic<int> taken = 0;
    std::thread reader([&] {
      for (int round = 1; round <= kRounds; ++round) {
        while (handed_over.load(std::memory_order_acquire) < round) std::this_thread::yield();
        std::size_t wrong = 0;
        // From the end, which was written last.
        for (std::size_t i = kBytes; i-- > 0;) wrong += memory[i] == std::byte(round) ? 0 : 1;
        EXPECT_EQ(wrong, 0U);
        taken.store(round, std::memory_order_release);
      }
    });
    for (int round = 1; round <= kRounds; ++round) {
      const std::vector<std::byte> from(kBytes, std::byte(round));
      copy.non_temporal(memory.data(), from.data(), kBytes);
      handed_over.store(round, std::memory_order_release);
      while (taken.load(std::memory_order_acquire) < round) std::this_thread::yield();
    }
    reader.join();
  }
}

std::vector<std::int64_t> targets() { return hwy::SupportedAndGeneratedTargets(); }

INSTANTIATE_TEST_SUITE_P(Targets, VectorKernels, ::testing::ValuesIn(targets()),
                         [](const auto& target) {
                           return std::string(hwy::TargetName(target.param));
                         });

TEST(Kernels, AnUnalignedBufferIsFine) {
  std::vector<std::byte> memory(4096);
  const std::vector<float> ones(100, 1.0F);
  std::memcpy(memory.data() + 1, ones.data(), 400);
  vector_kernel(DataType::f32, ReduceOp::sum)
      .combine(memory.data() + 1, nullptr, memory.data() + 1,
               reinterpret_cast<const std::byte*>(ones.data()), 100, {});
  for (std::size_t i = 0; i < 100; ++i) {
    float value = 0;
    std::memcpy(&value, memory.data() + 1 + 4 * i, 4);
    ASSERT_EQ(value, 2.0F);
  }
}

TEST(Float16, EveryValueSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto value = Float16::from_bits(static_cast<std::uint16_t>(bits));
    const auto wide = static_cast<float>(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(is_nan(Float16(wide)));
    } else {
      EXPECT_EQ(Float16(wide).bits, bits);
    }
  }
}

// Rounds with the C library, to a multiple of the distance between adjacent values of f16.
double rounded_to_f16(double value) {
  constexpr int kSmallestExponent = -14;
  const int exponent =
      value == 0 ? kSmallestExponent : std::max(std::ilogb(value), kSmallestExponent);
  const double distance = std::ldexp(1.0, exponent - 10);
  const double rounded = std::nearbyint(value / distance) * distance;
  constexpr double kLargest = 65504;
  return std::abs(rounded) > kLargest ? std::copysign(HUGE_VAL, value) : rounded;
}

TEST(Float16, RoundsToNearestEven) {
  std::mt19937 random(7);
  for (int i = 0; i < 1000000; ++i) {
    // Exponents around the range of f16, so that subnormals and overflow are common; few bits below
    // those that are kept, so that ties are.
    const auto bits =
        static_cast<std::uint32_t>((random() & 0x807FF800U) | ((96U + random() % 52U) << 23U));
    const auto value = std::bit_cast<float>(bits);
    const auto actual = static_cast<double>(static_cast<float>(Float16(value)));
    ASSERT_EQ(actual, rounded_to_f16(static_cast<double>(value))) << value;
    ASSERT_EQ(std::signbit(actual), std::signbit(value));
  }
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3F808000U)).bits, 0x3F80);  // tie, even below
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3F818000U)).bits, 0x3F82);  // tie, even above
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3F808001U)).bits, 0x3F81);
  EXPECT_TRUE(is_nan(BFloat16(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(static_cast<float>(BFloat16(-2.5F)), -2.5F);
}

}  // namespace
}  // namespace rondo::detail

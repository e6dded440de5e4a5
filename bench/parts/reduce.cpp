// The reduction kernels, compared with only reading their operands.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "reduce/fold.hpp"
#include "reduce/kernels.hpp"

namespace rondo::bench {
namespace {

// Sizes that fit in the L1 cache, in the L2 cache, and in neither.
constexpr std::int64_t kSizes[] = {16 << 10, 512 << 10, 64 << 20};

struct Operands {
  explicit Operands(std::size_t bytes) : a(bytes), b(bytes), out(bytes) {}
  std::vector<std::byte> a;
  std::vector<std::byte> b;
  std::vector<std::byte> out;
};

// Bytes read: of both operands.
void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * bytes));
}

void reduce(benchmark::State& state, DataType type, ReduceOp op) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Operands operands(bytes);
  const detail::ReduceFunction function = detail::vector_kernel(type, op).finish;
  for ([[maybe_unused]] auto iteration : state) {
    function(operands.out.data(), nullptr, operands.a.data(), operands.b.data(),
             bytes / size_of(type), {1, 1, 2});
    benchmark::ClobberMemory();
  }
  count_bytes(state, bytes);
}

// In place, as in a direct all_reduce: every operand is an output too. Bytes read: of all operands.
void fold(benchmark::State& state, DataType type, std::size_t operands) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<std::vector<std::byte>> buffers(operands, std::vector<std::byte>(bytes));
  std::vector<const std::byte*> ins;
  std::vector<std::byte*> outs;
  for (std::vector<std::byte>& buffer : buffers) {
    ins.push_back(buffer.data());
    outs.push_back(buffer.data());
  }
  const detail::FoldFunction function = detail::vector_fold(type, ReduceOp::sum);
  for ([[maybe_unused]] auto iteration : state) {
    function({outs.data(), operands, ins.data(), operands}, bytes / size_of(type));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(operands * bytes));
}

// Compiled for several vector widths, of which the widest that the processor has is used.
#if defined(__x86_64__)
[[gnu::target_clones("default", "avx2", "avx512f")]]
#endif
std::uint64_t read(const Operands& operands, std::size_t bytes) {
  std::uint64_t sums[32] = {};
  for (std::size_t at = 0; at + sizeof(sums) <= bytes; at += sizeof(sums)) {
    std::uint64_t a[32];
    std::uint64_t b[32];
    std::memcpy(a, operands.a.data() + at, sizeof(a));
    std::memcpy(b, operands.b.data() + at, sizeof(b));
    for (int lane = 0; lane < 32; ++lane) sums[lane] += a[lane] ^ b[lane];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t one : sums) sum += one;
  return sum;
}

// Only reads the operands' bytes, and combines them in registers.
void read_both(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Operands operands(bytes);
  for ([[maybe_unused]] auto iteration : state) {
    std::uint64_t sums = read(operands, bytes);
    benchmark::DoNotOptimize(sums);
  }
  count_bytes(state, bytes);
}

void copy(benchmark::State& state, bool non_temporal) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Operands operands(bytes);
  const detail::CopyKernel kernel = detail::vector_copy();
  for ([[maybe_unused]] auto iteration : state) {
    (non_temporal ? kernel.non_temporal : kernel.cached)(operands.out.data(), operands.a.data(),
                                                         bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

template <class Function>
void at_all_sizes(const std::string& title, Function function) {
  auto* registered = benchmark::RegisterBenchmark(title.c_str(), function);
  for (const std::int64_t size : kSizes) registered->Arg(size);
}

[[maybe_unused]] const bool kRegistered = [] {
  at_all_sizes("read both operands", read_both);
  for (int type = 0; type < kDataTypeCount; ++type) {
    for (int op = 0; op < kReduceOpCount; ++op) {
      const auto data_type = static_cast<DataType>(type);
      const auto redop = static_cast<ReduceOp>(op);
      if (!supports(data_type, redop)) continue;
      at_all_sizes("reduce " + std::string(name(data_type)) + " " + std::string(name(redop)),
                   [=](benchmark::State& state) { reduce(state, data_type, redop); });
    }
  }
  for (const DataType type : {DataType::f32, DataType::bf16, DataType::f16}) {
    for (const std::size_t operands : {2U, 4U, 8U}) {
      at_all_sizes("fold " + std::string(name(type)) + " of " + std::to_string(operands),
                   [=](benchmark::State& state) { fold(state, type, operands); });
    }
  }
  at_all_sizes("copy cached", [](benchmark::State& state) { copy(state, false); });
  at_all_sizes("copy non-temporal", [](benchmark::State& state) { copy(state, true); });
  return true;
}();

}  // namespace
}  // namespace rondo::bench

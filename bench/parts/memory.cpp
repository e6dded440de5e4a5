// Allocating, writing once and freeing: reachable memory beside malloc. (new memory is written
// before it is used, so that malloc's pages are counted, too.)

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>

#include <rondo/memory.h>

namespace rondo::bench {
namespace {

template <auto Allocate, auto Free>
void allocate(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  for ([[maybe_unused]] auto iteration : state) {
    void* memory = Allocate(bytes);
    std::memset(memory, 1, bytes);
    benchmark::DoNotOptimize(memory);
    benchmark::ClobberMemory();
    Free(memory);
  }
}

constexpr std::int64_t kSizes[] = {64, 1 << 10, 32 << 10, 1 << 20, 64 << 20, 256 << 20};

void of_all_sizes(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t bytes : kSizes) benchmark->Arg(bytes);
}

BENCHMARK(allocate<std::malloc, std::free>)->Name("malloc, write, free")->Apply(of_all_sizes);
BENCHMARK(allocate<rondo_malloc, rondo_free>)
    ->Name("rondo_malloc, write, rondo_free")
    ->Apply(of_all_sizes);

}  // namespace
}  // namespace rondo::bench

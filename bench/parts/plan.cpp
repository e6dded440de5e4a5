// What ranks compute as they join.

#include <benchmark/benchmark.h>

#include "plan/model_table.hpp"

namespace rondo::bench {
namespace {

// The table of which algorithm `automatic` takes between so many hosts of 8 ranks.
void model_table(benchmark::State& state) {
  detail::CostPlace place;
  place.hosts = static_cast<int>(state.range(0));
  place.ranks = 8 * place.hosts;
  place.rails = 8;
  for (auto _ : state) benchmark::DoNotOptimize(detail::ModelTable(place));
}
BENCHMARK(model_table)->Arg(2)->Arg(8)->Arg(2048)->Arg(16384)->ArgName("hosts");

}  // namespace
}  // namespace rondo::bench

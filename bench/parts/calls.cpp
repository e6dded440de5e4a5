// Small calls of ranks in one process. Google Benchmark would choose the number of calls for each
// rank separately, so all ranks run batches of a fixed length, and the slowest rank's time counts.

#include <benchmark/benchmark.h>

#include <rondo/calls.h>
#include <algorithm>
#include <chrono>
#include <rondo/communicator.hpp>
#include <thread>
#include <vector>

namespace rondo::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCalls = 5000;

template <class CallOnce>
void batches(benchmark::State& state, CallOnce call_once) {
  std::vector<Communicator> group = local_group(static_cast<int>(state.range(0)));
  std::vector<double> seconds(group.size());
  while (state.KeepRunningBatch(kCalls)) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      threads.emplace_back([&, rank] {
        group[rank].barrier();
        const auto start = Clock::now();
        for (int call = 0; call < kCalls; ++call) call_once(group[rank]);
        seconds[rank] = std::chrono::duration<double>(Clock::now() - start).count();
      });
    }
    for (std::thread& thread : threads) thread.join();
    state.SetIterationTime(*std::max_element(seconds.begin(), seconds.end()));
  }
}

void barrier(benchmark::State& state) {
  batches(state, [](Communicator& comm) { comm.barrier(); });
}
BENCHMARK(barrier)->Arg(1)->Arg(2)->Arg(4)->ArgName("ranks")->UseManualTime();

void all_reduce(benchmark::State& state) {
  const auto elements = static_cast<std::size_t>(state.range(1));
  batches(state, [elements](Communicator& comm) {
    thread_local std::vector<float> data;
    data.resize(elements);
    comm.all_reduce(data);
  });
}
BENCHMARK(all_reduce)
    ->ArgsProduct({{1, 2, 4}, {1, 64, 1024, 16384}})
    ->ArgNames({"ranks", "floats"})
    ->UseManualTime();

// The two waits of direct, without data and with some.
void direct(benchmark::State& state) {
  const auto elements = static_cast<std::size_t>(state.range(1));
  batches(state, [elements](Communicator& comm) {
    thread_local std::vector<float> data;
    data.resize(elements);
    comm.all_reduce(data, ReduceOp::sum, {.algorithm = Algorithm::direct});
  });
}
BENCHMARK(direct)
    ->ArgsProduct({{2, 4}, {0, 1024, 16384}})
    ->ArgNames({"ranks", "floats"})
    ->UseManualTime();

void all_reduce_async(benchmark::State& state) {
  batches(state, [](Communicator& comm) {
    thread_local float value = 0;
    comm.all_reduce_async(std::span(&value, 1)).wait();
  });
}
BENCHMARK(all_reduce_async)->Arg(2)->ArgName("ranks")->UseManualTime();

// What a call takes beside waiting for others, in C++ and in C.
void all_reduce_alone(benchmark::State& state) {
  std::vector<Communicator> group = local_group(1);
  float value = 0;
  for (auto _ : state) group[0].all_reduce(value);
}
BENCHMARK(all_reduce_alone);

void all_reduce_alone_in_c(benchmark::State& state) {
  rondo_comm* comm = nullptr;
  rondo_local_group(1, nullptr, &comm);
  float value = 0;
  for (auto _ : state) rondo_all_reduce(comm, &value, &value, 1, RONDO_F32, RONDO_SUM, nullptr);
  rondo_comm_destroy(comm);
}
BENCHMARK(all_reduce_alone_in_c);

}  // namespace
}  // namespace rondo::bench

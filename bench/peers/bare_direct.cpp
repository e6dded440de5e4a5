// The least that an all-reduce of ranks which reach each other's buffers can be: threads, two
// barriers, a loop that the compiler vectorises, and no checks. Prints the same rows as
// all_reduce.c: for each size the median of the slowest rank's times, in us.
//
//   g++ -std=c++20 -O3 -march=native bare_direct.cpp -o bare_direct -pthread && ./bare_direct RANKS
//   FIRST LAST FACTOR
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kMostRanks = 4;
struct alignas(128) Arrivals {
  std::atomic<unsigned> count{0};
};
Arrivals arrivals[kMostRanks];
float* ins[kMostRanks];
float* outs[kMostRanks];

void meet(int rank, int size) {
  const unsigned count = arrivals[rank].count.load(std::memory_order_relaxed) + 1;
  arrivals[rank].count.store(count, std::memory_order_release);
  for (int other = 0; other < size; ++other) {
    while (arrivals[other].count.load(std::memory_order_acquire) < count) std::this_thread::yield();
  }
}

template <int kSize>
void all_reduce(int rank, std::size_t elems) {
  meet(rank, kSize);
  const std::size_t end = elems * static_cast<std::size_t>(rank + 1) / kSize;
#pragma GCC ivdep
  for (std::size_t i = elems * static_cast<std::size_t>(rank) / kSize; i < end; ++i) {
    float sum = ins[0][i];
    for (int r = 1; r < kSize; ++r) sum += ins[r][i];
    for (int r = 0; r < kSize; ++r) outs[r][i] = sum;
  }
  meet(rank, kSize);
}

template <int kSize>
void measure(std::size_t bytes, bool in_place) {
  const std::size_t elems = bytes / sizeof(float);
  const std::size_t calls =
      std::clamp<std::size_t>((std::size_t{4} << 30U) / (bytes + 100000), 10, 20000);
  std::vector<std::vector<float>> buffers(2 * kSize, std::vector<float>(elems));
  std::vector<std::vector<double>> us(kSize, std::vector<double>(calls));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kSize; ++rank) {
    outs[rank] = buffers[2 * rank].data();
    ins[rank] = in_place ? outs[rank] : buffers[2 * rank + 1].data();
  }
  for (int rank = 0; rank < kSize; ++rank) {
    ranks.emplace_back([&, rank] {
      for (std::size_t call = 0; call < calls + calls / 10; ++call) {
        const auto begin = std::chrono::steady_clock::now();
        all_reduce<kSize>(rank, elems);
        us[rank][call % calls] =
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
                .count();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (std::size_t call = 0; call < calls; ++call) {
    for (int rank = 1; rank < kSize; ++rank) us[0][call] = std::max(us[0][call], us[rank][call]);
  }
  std::nth_element(us[0].begin(), us[0].begin() + static_cast<std::ptrdiff_t>(calls / 2),
                   us[0].end());
  std::printf("%zu %s %.3f\n", bytes, in_place ? "in_place" : "out", us[0][calls / 2]);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc == 5 ? std::atoi(argv[1]) : 0;
  if (ranks != 2 && ranks != 4)
    return std::fprintf(stderr, "usage: bare_direct 2|4 FIRST LAST FACTOR\n"), 2;
  for (std::size_t bytes = std::strtoul(argv[2], nullptr, 10);
       bytes <= std::strtoul(argv[3], nullptr, 10); bytes *= std::strtoul(argv[4], nullptr, 10)) {
    for (const bool in_place : {false, true})
      ranks == 2 ? measure<2>(bytes, in_place) : measure<4>(bytes, in_place);
  }
}

// Data-parallel training in a short loop: 4 ranks fit y = W x together, a layer at a time, and each
// layer's gradient is sent while the next one is computed. Ranks are threads here; with
// rondo::from_mpi they are processes.
#include <cstdio>
#include <random>
#include <rondo/rondo.hpp>
#include <span>
#include <thread>
#include <vector>

constexpr std::size_t kLayers = 8, kWidth = 4096;

void train(rondo::Communicator& comm) {
  std::vector<std::vector<float>> weights(kLayers, std::vector<float>(kWidth));
  // One after the other, in memory that other processes of the host reach: none of them is copied.
  std::pmr::vector<float> all_slopes(kLayers * kWidth, &rondo::reachable_memory());
  std::vector<std::span<float>> slopes;
  for (std::size_t i = 0; i < kLayers; ++i) {
    slopes.push_back(std::span(all_slopes).subspan(i * kWidth, kWidth));
  }
  std::vector<rondo::Parameter> parameters;
  for (std::size_t i = 0; i < kLayers; ++i) {
    parameters.emplace_back("layer" + std::to_string(i), slopes[i], weights[i]);
  }
  rondo::GradientReducer reducer(comm, parameters);  // all ranks have rank 0's weights now

  std::mt19937 random(static_cast<unsigned>(comm.rank()));  // every rank draws different samples
  std::normal_distribution<float> noise(0, 0.1F);
  for (int step = 1; step <= 50; ++step) {
    for (std::size_t layer = kLayers; layer-- > 0;) {  // backprop: the last layer first
      for (std::size_t i = 0; i < kWidth; ++i) {
        const float target = static_cast<float>(layer) + noise(random);
        slopes[layer][i] = weights[layer][i] - target;
      }
      reducer.mark_ready(layer);  // may be sent from here on
    }
    reducer.finish();  // slopes are averages over the ranks
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      for (std::size_t i = 0; i < kWidth; ++i) weights[layer][i] -= 0.2F * slopes[layer][i];
    }
  }
  const rondo::GradientStatistics& last = reducer.statistics();
  if (comm.rank() == 0) {
    std::printf("layer 5 is near %.1f; %zu buckets of up to %zu KiB\n", weights[5][0],
                last.buckets.size(), reducer.bucket_bytes() >> 10U);
  }
}

int main() {
  std::vector<std::thread> threads;
  std::vector<rondo::Communicator> ranks = rondo::local_group(4);
  for (rondo::Communicator& comm : ranks) threads.emplace_back([&comm] { train(comm); });
  for (std::thread& thread : threads) thread.join();
}

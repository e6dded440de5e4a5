// A user-defined hook: gradients are sent as 8-bit integers with a scale that the ranks agree on,
// and each rank adds its rounding error to the next iteration's gradient ("error feedback": Seide
// et al., Interspeech 2014; Karimireddy et al., ICML 2019).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <rondo/rondo.hpp>
#include <thread>
#include <vector>

// Sums buckets of f32, in place. Rounding errors are kept by bucket index, so the order of buckets
// must not change.
class EightBits {
 public:
  void operator()(rondo::Communicator& comm, const rondo::GradientBucket& bucket) {
    const std::span<float> gradient = bucket.as<float>();
    std::vector<float>& left = left_[bucket.index];
    std::vector<std::int8_t>& narrow = narrow_[bucket.index];
    left.resize(gradient.size());
    narrow.resize(gradient.size());

    std::array<float, 1> largest = {0};
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] += left[i];
      largest[0] = std::max(largest[0], std::abs(gradient[i]));
    }
    comm.all_reduce(largest, rondo::ReduceOp::max);
    // The sum over all ranks must fit in 8 bits.
    const float most = std::floor(127.0F / static_cast<float>(comm.size()));
    const float scale = largest[0] > 0 ? most / largest[0] : 1;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      narrow[i] = static_cast<std::int8_t>(std::lround(gradient[i] * scale));
      left[i] = gradient[i] - static_cast<float>(narrow[i]) / scale;
    }
    comm.all_reduce(narrow);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = static_cast<float>(narrow[i]) / scale;
    }
  }

 private:
  std::map<std::size_t, std::vector<float>> left_;
  std::map<std::size_t, std::vector<std::int8_t>> narrow_;
};

void train(rondo::Communicator& comm) {
  std::vector<float> weights(10'000, 1), slopes(weights.size());
  rondo::GradientOptions options;
  options.hook = EightBits();
  options.order_by_arrival = false;
  rondo::GradientReducer reducer(comm, {{"w", slopes, weights}}, options);
  for (int step = 0; step < 100; ++step) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      // Even ranks pull the weights to 0.75, odd ranks to -0.25; their average pulls to 0.25.
      slopes[i] = weights[i] - (comm.rank() % 2 == 0 ? 0.75F : -0.25F);
    }
    reducer.mark_ready(0);
    reducer.finish();
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.1F * slopes[i];
  }
  if (comm.rank() == 0) std::printf("distance from 0.25: %.4f\n", std::abs(weights[77] - 0.25F));
}

int main() {
  std::vector<std::thread> threads;
  std::vector<rondo::Communicator> ranks = rondo::local_group(2);
  for (rondo::Communicator& comm : ranks) threads.emplace_back([&comm] { train(comm); });
  for (std::thread& thread : threads) thread.join();
}

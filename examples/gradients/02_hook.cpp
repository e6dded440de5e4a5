// A hook of the user's own: gradients travel as 8-bit integers under a scale that the ranks agree on, and what
// rounding leaves out is added to the next iteration's gradient ("error feedback": Seide et al., Interspeech
// 2014; Karimireddy et al., ICML 2019), so that nothing is lost for long.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <rondo/rondo.hpp>
#include <thread>
#include <vector>

// Sums buckets of f32, in place. Buckets keep their places if their order does.
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
    // A sum over all ranks must fit.
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
      // Ranks pull to both sides of 0.25; their average pulls there.
      slopes[i] = weights[i] - (comm.rank() % 2 == 0 ? 0.75F : -0.25F);
    }
    reducer.mark_ready(0);
    reducer.finish();
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.1F * slopes[i];
  }
  if (comm.rank() == 0) std::printf("0.25 is reached to %.4f\n", std::abs(weights[77] - 0.25F));
}

int main() {
  std::vector<std::thread> threads;
  std::vector<rondo::Communicator> ranks = rondo::local_group(2);
  for (rondo::Communicator& comm : ranks) threads.emplace_back([&comm] { train(comm); });
  for (std::thread& thread : threads) thread.join();
}

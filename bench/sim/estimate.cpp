#include "bench/sim/estimate.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <utility>

namespace rondo::sim {
namespace {

// Runs `work(i)` for i below `count`, on all cores.
void for_each_in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{
      0};  // each thread takes the next number; nothing else is ordered by it
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (;;) {
        const std::size_t number = next.fetch_add(1, std::memory_order_relaxed);
        if (number >= count) return;
        work(number);
      }
    });
  }
}

// A call that is simulated, and the runs' times.
struct Simulated {
  int ranks = 0;
  Strategy strategy = Strategy::ring;
  std::size_t bytes = 0;
  std::vector<double> us;
};

// Times of calls of any size, from simulated ones: between two sizes in proportion to the bytes.
// Each call is one of the runs, taken at random, since the calls of a step are late independently
// of each other.
class CallTimes {
 public:
  void add(std::size_t bytes, const std::vector<double>& us) { points_[bytes] = &us; }
  double operator()(std::size_t bytes, std::mt19937_64& random) const {
    const std::size_t run = random();
    const auto us = [&](const auto& point) {
      return (*point->second)[run % point->second->size()];
    };
    auto above = points_.lower_bound(bytes);
    if (above == points_.end()) --above;
    if (above == points_.begin()) return us(above);
    const auto below = std::prev(above);
    const double part = static_cast<double>(bytes - below->first) /
                        static_cast<double>(above->first - below->first);
    return us(below) + part * (us(above) - us(below));
  }

 private:
  std::map<std::size_t, const std::vector<double>*> points_;
};

CallTimes times_of(const Answer& answer, const std::vector<Simulated>& calls) {
  CallTimes times;
  for (const Simulated& call : calls) {
    const bool asked = call.ranks == answer.ranks && call.strategy == answer.strategy;
    if (asked) times.add(call.bytes, call.us);
  }
  return times;
}

// An epoch is as many steps, each of them one of the runs, taken at random.
Spread epoch_of(const std::vector<double>& steps, double steps_per_epoch, int runs) {
  constexpr double kMostDraws = 1e5;
  const double draws = std::min(std::max(1.0, std::round(steps_per_epoch)), kMostDraws);
  std::vector<double> epochs;
  for (int run = 0; run < runs; ++run) {
    std::mt19937_64 random(static_cast<std::uint64_t>(run) + 1);
    double sum = 0;
    for (int i = 0; i < static_cast<int>(draws); ++i) sum += steps[random() % steps.size()];
    epochs.push_back(sum / draws * steps_per_epoch);
  }
  return spread_of(epochs);
}

// The sizes at which calls are simulated for a job: up to the largest bucket that it can have.
std::vector<std::size_t> grid_for(const Job& job, const std::vector<std::size_t>& bucket_bytes) {
  constexpr std::size_t kLeast = 64;
  constexpr std::size_t kFactor = 4;
  std::size_t most = *std::max_element(bucket_bytes.begin(), bucket_bytes.end());
  for (const Gradient& gradient : job.gradients) most = std::max(most, gradient.bytes);
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = kLeast; bytes < most; bytes *= kFactor) sizes.push_back(bytes);
  sizes.push_back(most);
  return sizes;
}

// By how much the slowest of `ranks` ranks is slower than the mean.
double slowest_of(int ranks, double spread, std::mt19937_64& random) {
  if (spread == 0) return 1;
  std::normal_distribution<double> factor(1, spread);
  double slowest = 0;
  for (int i = 0; i < ranks; ++i) slowest = std::max(slowest, factor(random));
  return slowest;
}

std::vector<Simulated> simulate(const Question& question, const std::vector<std::size_t>& sizes) {
  std::vector<Simulated> calls;
  for (const int ranks : question.ranks) {
    for (const Strategy strategy : question.strategies) {
      if (!objection_to(strategy, question.network, ranks).empty()) continue;
      for (const std::size_t bytes : sizes) calls.push_back({ranks, strategy, bytes, {}});
    }
  }
  const int runs = question.network.jitter_us > 0 ? question.runs : 1;
  for (Simulated& call : calls) call.us.resize(static_cast<std::size_t>(runs));
  for_each_in_parallel(calls.size() * static_cast<std::size_t>(runs), [&](std::size_t number) {
    // The longest first, so that no core waits for the other at the end.
    Simulated& call = calls[calls.size() - 1 - number / static_cast<std::size_t>(runs)];
    const std::size_t run = number % static_cast<std::size_t>(runs);
    call.us[run] = call_us(question.network, call.strategy, call.ranks, call.bytes,
                           {.seed = run + 1, .calls = question.job ? 1 : question.calls});
  });
  return calls;
}

// The best bucket, and what a step takes with it.
Answer step_answer(const Question& question, Answer answer, const std::vector<Simulated>& calls) {
  const Job& job = *question.job;
  const CallTimes times = times_of(answer, calls);
  bool first = true;
  for (const std::size_t bucket : question.bucket_bytes) {
    std::vector<double> steps;
    std::vector<double> in_calls;
    std::vector<double> exposed;
    for (int run = 0; run < question.runs; ++run) {
      std::mt19937_64 random(static_cast<std::uint64_t>(run) + 1);
      const double slowdown = slowest_of(answer.ranks, question.compute_spread, random);
      const StepTime time =
          step_time(job, bucket, slowdown, [&](std::size_t bytes) { return times(bytes, random); });
      steps.push_back(time.step_us);
      in_calls.push_back(time.call_us);
      exposed.push_back(time.exposed_us);
    }
    const Spread step = spread_of(steps);
    if (!first && step.median >= answer.step_us.median) continue;
    first = false;
    answer.bytes = bucket;
    answer.step_us = step;
    answer.call_us = spread_of(in_calls);
    answer.exposed_us = spread_of(exposed);
    answer.epoch_us = epoch_of(steps, question.steps_per_epoch, question.runs);
  }
  return answer;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {values.front(), median, values.back()};
}

std::vector<Answer> answers_to(const Question& question) {
  const std::vector<std::size_t> sizes =
      question.job ? grid_for(*question.job, question.bucket_bytes) : question.bytes;
  const std::vector<Simulated> calls = simulate(question, sizes);
  std::vector<Answer> answers;
  for (const int ranks : question.ranks) {
    for (const Strategy strategy : question.strategies) {
      Answer answer;
      answer.ranks = ranks;
      answer.strategy = strategy;
      answer.objection = objection_to(strategy, question.network, ranks);
      answer.beyond_library = is_beyond_library(strategy, question.network, ranks);
      if (!answer.objection.empty()) {
        answers.push_back(answer);
        continue;
      }
      if (question.job) {
        answers.push_back(step_answer(question, answer, calls));
        continue;
      }
      for (const Simulated& call : calls) {
        if (call.ranks != ranks || call.strategy != strategy) continue;
        answer.bytes = call.bytes;
        answer.call_us = spread_of(call.us);
        answers.push_back(answer);
      }
    }
  }
  return answers;
}

}  // namespace rondo::sim

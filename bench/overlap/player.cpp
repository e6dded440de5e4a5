#include "bench/overlap/player.hpp"

#include <span>
#include <thread>

namespace rondo::overlap {
namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace

Player::Player(Communicator& comm, const Options& options, const Model& model)
    : comm_(comm), options_(options), ready_us_(ready_times(model, options.compute_ms * 1e3)) {
  std::size_t all = 0;
  for (const Tensor& tensor : model) all += tensor.count;
  memory_.resize(all);
  std::size_t offset = 0;
  for (const Tensor& tensor : model) {
    parameters_.emplace_back(tensor.name, std::span(memory_).subspan(offset, tensor.count));
    offset += tensor.count;
  }
}

Row Player::measure(std::size_t bucket_bytes) {
  GradientOptions options;
  options.average = Average::sum;  // of zeros
  options.bucket_bytes = bucket_bytes;
  if (options_.wire == "bf16") options.wire = WireType::bf16;
  if (options_.wire == "f16") options.wire = WireType::f16;
  GradientReducer during(comm_, parameters_, options);
  options.bucket_bytes = during.bucket_bytes();
  options.overlap = false;
  GradientReducer after(comm_, parameters_, options);
  const std::array<GradientReducer*, kModes> reducers = {nullptr, &after, &during};

  std::array<std::vector<double>, kModes> times;
  std::vector<std::vector<double>> ready;
  std::vector<double> marks;
  for (int step = -1; step < options_.steps; ++step) {
    for (int turn = 0; turn < kModes; ++turn) {
      const auto mode = static_cast<std::size_t>((step + 1 + turn) % kModes);
      const double us = step_us(reducers[mode]);
      if (step < 0) continue;
      times[mode].push_back(us);
      if (reducers[mode] != &during) continue;
      marks.push_back(mark_us_ / static_cast<double>(parameters_.size()));
      const auto& buckets = during.statistics().buckets;
      ready.resize(buckets.size());
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        ready[b].push_back(first_mark_us_ + buckets[b].ready_us);
      }
    }
  }
  return row(during, times, ready, marks);
}

// The slowest rank's time.
double Player::step_us(GradientReducer* reducer) {
  comm_.barrier();
  const auto start = Clock::now();
  mark_us_ = 0;
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    wait_until(start, ready_us_[i]);
    if (reducer == nullptr) continue;
    const auto marked = Clock::now();
    if (i + 1 == parameters_.size()) first_mark_us_ = us_since(start);
    reducer->mark_ready(i);
    mark_us_ += us_since(marked);
  }
  if (reducer != nullptr) reducer->finish();
  std::array<double, 1> us = {us_since(start)};
  comm_.all_reduce(us, ReduceOp::max);
  return us[0];
}

void Player::wait_until(Clock::time_point start, double us) const {
  const auto end = start + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double, std::micro>(us));
  if (options_.busy) {
    while (Clock::now() < end) {
    }
  } else {
    std::this_thread::sleep_until(end);
  }
}

Row Player::row(const GradientReducer& reducer,
                const std::array<std::vector<double>, kModes>& times,
                const std::vector<std::vector<double>>& ready,
                const std::vector<double>& marks) const {
  Row row;
  row.bucket_bytes = reducer.bucket_bytes();
  for (std::size_t mode = 0; mode < kModes; ++mode) row.us[mode] = spread_of(times[mode]);
  row.figures = figures_of(row.us[0].median, row.us[1].median, row.us[2].median);
  std::vector<ReadyBucket> buckets;
  const auto& statistics = reducer.statistics().buckets;
  for (std::size_t b = 0; b < statistics.size(); ++b) {
    buckets.push_back({spread_of(ready[b]).median, statistics[b].bytes});
  }
  row.buckets = buckets.size();
  row.most_hidden = most_hidden(buckets, row.figures);
  row.mark_us = spread_of(marks).median;
  return row;
}

}  // namespace rondo::overlap

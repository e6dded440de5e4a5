#include "tools/overlap/three_modes.hpp"

namespace rondo::overlap {
namespace {

GradientOptions with_overlap(GradientOptions options, bool overlap, std::size_t bucket_bytes) {
  options.overlap = overlap;
  options.bucket_bytes = bucket_bytes;
  return options;
}

// Of each step in one mode.
struct Times {
  std::vector<double> step;
  std::vector<double> backward;
  std::vector<double> exchanged;
};

Measured measured_from(const std::array<Times, kModes>& times,
                       const std::vector<std::vector<double>>& ready,
                       const GradientReducer& reducer) {
  Measured measured;
  for (std::size_t mode = 0; mode < kModes; ++mode) {
    measured.modes[mode] = {spread_of(times[mode].step), spread_of(times[mode].backward),
                            spread_of(times[mode].exchanged)};
  }
  measured.figures = figures_of(measured.of(Mode::alone).exchanged.median,
                                measured.of(Mode::after).exchanged.median,
                                measured.of(Mode::during).exchanged.median);
  const double slowed =
      measured.of(Mode::during).backward.median / measured.of(Mode::alone).backward.median;
  std::vector<ReadyBucket> buckets;
  for (std::size_t b = 0; b < ready.size(); ++b) {
    buckets.push_back({spread_of(ready[b]).median / slowed, reducer.statistics().buckets[b].bytes});
  }
  measured.most_hidden = most_hidden(buckets, measured.figures);
  measured.buckets = buckets.size();
  measured.bucket_bytes = reducer.bucket_bytes();
  return measured;
}

}  // namespace

ThreeModes::ThreeModes(Communicator& comm, const std::vector<Parameter>& parameters,
                       const GradientOptions& options)
    : during_(comm, parameters, with_overlap(options, true, options.bucket_bytes)),
      after_(comm, parameters, with_overlap(options, false, during_.bucket_bytes())) {}

void ThreeModes::ready(std::size_t parameter) {
  if (first_mark_ == begin_) first_mark_ = Clock::now();
  if (mode_ == Mode::after) after_.mark_ready(parameter);
  if (mode_ == Mode::during) during_.mark_ready(parameter);
}

void ThreeModes::finish() {
  end_ = Clock::now();
  if (mode_ == Mode::after) after_.finish();
  if (mode_ == Mode::during) during_.finish();
  exchanged_ = Clock::now();
}

Measured measure(Communicator& comm, ThreeModes& modes, int warm_ups, int steps,
                 const std::function<void(int number)>& step) {
  std::array<Times, kModes> times;
  std::vector<std::vector<double>> ready;  // by bucket
  for (int number = 0; number < warm_ups + steps; ++number) {
    for (int turn = 0; turn < kModes; ++turn) {
      const int mode = (number + turn) % kModes;
      modes.use(static_cast<Mode>(mode));
      comm.barrier();
      const auto start = ThreeModes::Clock::now();
      step(number);
      const std::chrono::duration<double, std::micro> took = ThreeModes::Clock::now() - start;
      std::array<double, 3> slowest = {took.count(), modes.backward_us(), modes.exchanged_us()};
      comm.all_reduce(slowest, ReduceOp::max);
      if (number < warm_ups) continue;
      Times& its = times[static_cast<std::size_t>(mode)];
      its.step.push_back(slowest[0]);
      its.backward.push_back(slowest[1]);
      its.exchanged.push_back(slowest[2]);
      if (static_cast<Mode>(mode) != Mode::during) continue;
      const auto& buckets = modes.during().statistics().buckets;
      ready.resize(buckets.size());
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        ready[b].push_back(modes.first_mark_us() + buckets[b].ready_us);
      }
    }
  }
  return measured_from(times, ready, modes.during());
}

}  // namespace rondo::overlap

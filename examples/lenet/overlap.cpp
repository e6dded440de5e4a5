#include "overlap.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace lenet {
namespace {

using rondo::overlap::Figures;
using rondo::overlap::kModeNames;
using rondo::overlap::kModes;
using rondo::overlap::Mode;
using rondo::overlap::Spread;
using rondo::overlap::spread_of;

rondo::GradientOptions with_overlap(rondo::GradientOptions options, bool overlap) {
  options.overlap = overlap;
  return options;
}

// Of each step in one mode, on the slowest rank.
struct Times {
  std::vector<double> step;
  std::vector<double> backward;
  std::vector<double> exchanged;
};

std::string text_of(const Spread& spread) {
  return fmt::format("{:8.3f} ({:.3f} .. {:.3f})", spread.median / 1e3, spread.low / 1e3,
                     spread.high / 1e3);
}

void print(const std::array<Times, kModes>& times,
           const std::vector<rondo::overlap::ReadyBucket>& buckets, std::size_t bucket_bytes,
           const std::string& place) {
  const auto median = [&](Mode mode, std::vector<double> Times::*member) {
    return spread_of(times[static_cast<std::size_t>(mode)].*member).median;
  };
  fmt::print("# ms on the slowest rank: medians (and between which nine of ten lie)\n");
  fmt::print("{:<8} {:<30} {:<30} {:<30}\n", "mode", "step", "backprop", "backprop and exchange");
  for (int mode = 0; mode < kModes; ++mode) {
    const Times& its = times[static_cast<std::size_t>(mode)];
    fmt::print("{:<8} {:<30} {:<30} {:<30}\n", kModeNames[mode], text_of(spread_of(its.step)),
               text_of(spread_of(its.backward)), text_of(spread_of(its.exchanged)));
  }
  const Figures figures = rondo::overlap::figures_of(median(Mode::alone, &Times::exchanged),
                                                     median(Mode::after, &Times::exchanged),
                                                     median(Mode::during, &Times::exchanged));
  const double backward = median(Mode::alone, &Times::backward);
  fmt::print(
      "communication: {:.3f} ms, {:.1f} % of backprop; {} buckets of up to {} KiB; thread: {}\n",
      figures.communication_us / 1e3, 100 * figures.communication_us / backward, buckets.size(),
      bucket_bytes >> 10U, place);
  fmt::print("hidden fraction H: {:.3f}; the ready times allow {:.3f}\n", figures.hidden,
             rondo::overlap::most_hidden(buckets, figures));
  fmt::print("backprop during communication / alone: {:.4f}\n",
             median(Mode::during, &Times::backward) / backward);
  fmt::print("step with overlap / without: {:.4f}; with overlap / alone: {:.4f}\n",
             median(Mode::during, &Times::step) / median(Mode::after, &Times::step),
             median(Mode::during, &Times::step) / median(Mode::alone, &Times::step));
}

}  // namespace

ThreeModes::ThreeModes(rondo::Communicator& comm, ParameterBlock& gradients,
                       const rondo::GradientOptions& options)
    : after_(comm, reducible(gradients), with_overlap(options, false)),
      during_(comm, reducible(gradients), with_overlap(options, true)) {}

Exchange ThreeModes::exchange() {
  Exchange exchange;
  exchange.begin = [this] { begin_ = first_mark_ = Clock::now(); };
  exchange.ready = [this](std::size_t parameter) {
    if (first_mark_ == begin_) first_mark_ = Clock::now();
    if (mode_ == Mode::after) after_.mark_ready(parameter);
    if (mode_ == Mode::during) during_.mark_ready(parameter);
  };
  exchange.finish = [this] {
    end_ = Clock::now();
    if (mode_ == Mode::after) after_.finish();
    if (mode_ == Mode::during) during_.finish();
    exchanged_ = Clock::now();
  };
  return exchange;
}

void measure_overlap(rondo::Communicator& comm, Learner& learner, ThreeModes& modes, int steps,
                     std::size_t minibatches) {
  using Clock = std::chrono::steady_clock;
  constexpr int kWarmUps = 5;
  std::array<Times, kModes> times;
  std::vector<std::vector<double>> ready;
  std::vector<rondo::overlap::ReadyBucket> buckets;
  for (int step = -kWarmUps; step < steps; ++step) {
    for (int turn = 0; turn < kModes; ++turn) {
      const int mode = (step + kWarmUps + turn) % kModes;
      modes.use(static_cast<Mode>(mode));
      comm.barrier();
      const auto start = Clock::now();
      learner.step(static_cast<std::size_t>(step + kWarmUps) % minibatches);
      std::array<double, 3> took = {
          std::chrono::duration<double, std::micro>(Clock::now() - start).count(),
          modes.backward_us(), modes.exchanged_us()};
      comm.all_reduce(took, rondo::ReduceOp::max);
      if (step < 0) continue;
      Times& its = times[static_cast<std::size_t>(mode)];
      its.step.push_back(took[0]);
      its.backward.push_back(took[1]);
      its.exchanged.push_back(took[2]);
      if (static_cast<Mode>(mode) != Mode::during) continue;
      const auto& of_buckets = modes.during().statistics().buckets;
      ready.resize(of_buckets.size());
      buckets.resize(of_buckets.size());
      for (std::size_t b = 0; b < of_buckets.size(); ++b) {
        ready[b].push_back(modes.first_mark_us() + of_buckets[b].ready_us);
        buckets[b].bytes = of_buckets[b].bytes;
      }
    }
  }
  // As if backprop were not slowed.
  const auto backward = [&](Mode mode) {
    return spread_of(times[static_cast<std::size_t>(mode)].backward).median;
  };
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    buckets[b].ready_us =
        spread_of(ready[b]).median * backward(Mode::alone) / backward(Mode::during);
  }
  if (comm.rank() == 0) {
    print(times, buckets, modes.during().bucket_bytes(), modes.during().progress_place());
  }
}

}  // namespace lenet

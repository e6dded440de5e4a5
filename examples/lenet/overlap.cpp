#include "overlap.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace lenet {
namespace {

using rondo::overlap::kModeNames;
using rondo::overlap::kModes;
using rondo::overlap::Mode;
using rondo::overlap::Spread;
using rondo::overlap::spread_of;

rondo::GradientOptions with_overlap(rondo::GradientOptions options, bool overlap,
                                    std::size_t bucket_bytes) {
  options.overlap = overlap;
  options.bucket_bytes = bucket_bytes;
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

double median(const std::vector<double>& times) { return spread_of(times).median; }

OverlapReport report_of(const std::array<Times, kModes>& times,
                        const std::vector<std::vector<double>>& ready,
                        const rondo::GradientReducer& reducer) {
  OverlapReport report;
  for (std::size_t mode = 0; mode < kModes; ++mode) {
    report.modes[mode] = {spread_of(times[mode].step), spread_of(times[mode].backward),
                          spread_of(times[mode].exchanged)};
  }
  report.figures = rondo::overlap::figures_of(report.of(Mode::alone).exchanged.median,
                                              report.of(Mode::after).exchanged.median,
                                              report.of(Mode::during).exchanged.median);
  // As if backprop were not slowed.
  const double slowed =
      report.of(Mode::during).backward.median / report.of(Mode::alone).backward.median;
  std::vector<rondo::overlap::ReadyBucket> buckets;
  for (std::size_t b = 0; b < ready.size(); ++b) {
    buckets.push_back({median(ready[b]) / slowed, reducer.statistics().buckets[b].bytes});
  }
  report.most_hidden = rondo::overlap::most_hidden(buckets, report.figures);
  report.buckets = buckets.size();
  report.bucket_bytes = reducer.bucket_bytes();
  report.progress_place = reducer.progress_place();
  return report;
}

}  // namespace

ThreeModes::ThreeModes(rondo::Communicator& comm, ParameterBlock& gradients,
                       const rondo::GradientOptions& options)
    : during_(comm, reducible(gradients), with_overlap(options, true, options.bucket_bytes)),
      after_(comm, reducible(gradients), with_overlap(options, false, during_.bucket_bytes())) {}

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

Exchange exchange_in(const std::shared_ptr<ThreeModes>& modes) {
  Exchange exchange;
  exchange.begin = [modes] { modes->begin(); };
  exchange.ready = [modes](std::size_t parameter) { modes->ready(parameter); };
  exchange.finish = [modes] { modes->finish(); };
  return exchange;
}

OverlapReport measure_overlap(rondo::Communicator& comm, Learner& learner, ThreeModes& modes,
                              int steps, std::size_t minibatches) {
  using Clock = std::chrono::steady_clock;
  constexpr int kWarmUps = 5;
  std::array<Times, kModes> times;
  std::vector<std::vector<double>> ready;  // by bucket
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
      const auto& buckets = modes.during().statistics().buckets;
      ready.resize(buckets.size());
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        ready[b].push_back(modes.first_mark_us() + buckets[b].ready_us);
      }
    }
  }
  return report_of(times, ready, modes.during());
}

void print(const OverlapReport& report) {
  fmt::print("# ms on the slowest rank: medians (and between which nine of ten lie)\n");
  fmt::print("{:<8} {:<30} {:<30} {:<30}\n", "mode", "step", "backprop", "backprop and exchange");
  for (int mode = 0; mode < kModes; ++mode) {
    const OverlapReport::OfMode& its = report.of(static_cast<Mode>(mode));
    fmt::print("{:<8} {:<30} {:<30} {:<30}\n", kModeNames[mode], text_of(its.step),
               text_of(its.backward), text_of(its.exchanged));
  }
  const OverlapReport::OfMode& alone = report.of(Mode::alone);
  const OverlapReport::OfMode& during = report.of(Mode::during);
  fmt::print(
      "communication: {:.3f} ms, {:.1f} % of backprop; {} buckets of up to {} KiB; thread: {}\n",
      report.figures.communication_us / 1e3,
      100 * report.figures.communication_us / alone.backward.median, report.buckets,
      report.bucket_bytes >> 10U, report.progress_place);
  fmt::print("hidden fraction H: {:.3f}; the ready times allow {:.3f}\n", report.figures.hidden,
             report.most_hidden);
  fmt::print("backprop during communication / alone: {:.4f}\n",
             during.backward.median / alone.backward.median);
  fmt::print("step with overlap / without: {:.4f}; with overlap / alone: {:.4f}\n",
             during.step.median / report.of(Mode::after).step.median,
             during.step.median / alone.step.median);
}

}  // namespace lenet

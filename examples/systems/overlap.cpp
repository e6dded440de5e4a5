#include "overlap.hpp"

#include <fmt/format.h>

namespace lenet::systems {
namespace {

using rondo::overlap::kModeNames;
using rondo::overlap::kModes;
using rondo::overlap::Measured;
using rondo::overlap::Mode;
using rondo::overlap::Spread;
using rondo::overlap::ThreeModes;

std::string text_of(const Spread& spread) {
  return fmt::format("{:8.3f} ({:.3f} .. {:.3f})", spread.median / 1e3, spread.low / 1e3,
                     spread.high / 1e3);
}

}  // namespace

Exchange exchange_in(const std::shared_ptr<ThreeModes>& modes) {
  Exchange exchange;
  exchange.begin = [modes] { modes->begin(); };
  exchange.ready = [modes](std::size_t parameter) { modes->ready(parameter); };
  exchange.finish = [modes] { modes->finish(); };
  return exchange;
}

Measured measure_overlap(rondo::Communicator& comm, Learner& learner, ThreeModes& modes, int steps,
                         std::size_t minibatches) {
  constexpr int kWarmUps = 5;
  return rondo::overlap::measure(comm, modes, kWarmUps, steps, [&](int number) {
    learner.step(static_cast<std::size_t>(number) % minibatches);
  });
}

void print(const Measured& report, const std::string& progress_place) {
  fmt::print("# ms on the slowest rank: medians (and the range of the middle 90 % of steps)\n");
  fmt::print("{:<8} {:<30} {:<30} {:<30}\n", "mode", "step", "backprop", "backprop and exchange");
  for (int mode = 0; mode < kModes; ++mode) {
    const Measured::OfMode& its = report.of(static_cast<Mode>(mode));
    fmt::print("{:<8} {:<30} {:<30} {:<30}\n", kModeNames[mode], text_of(its.step),
               text_of(its.backward), text_of(its.exchanged));
  }
  const Measured::OfMode& alone = report.of(Mode::alone);
  const Measured::OfMode& during = report.of(Mode::during);
  fmt::print(
      "communication: {:.3f} ms, {:.1f} % of backprop; {} buckets of up to {} KiB; thread: {}\n",
      report.figures.communication_us / 1e3,
      100 * report.figures.communication_us / alone.backward.median, report.buckets,
      report.bucket_bytes >> 10U, progress_place);
  fmt::print("hidden fraction H: {:.3f}; the ready times allow {:.3f}\n", report.figures.hidden,
             report.most_hidden);
  fmt::print("backprop during communication / alone: {:.4f}\n",
             during.backward.median / alone.backward.median);
  fmt::print("step with overlap / without: {:.4f}; with overlap / alone: {:.4f}\n",
             during.step.median / report.of(Mode::after).step.median,
             during.step.median / alone.step.median);
}

}  // namespace lenet::systems

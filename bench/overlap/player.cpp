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
    parameters_.push_back(
        Parameter::gradient_only(tensor.name, std::span(memory_).subspan(offset, tensor.count)));
    offset += tensor.count;
  }
}

Row Player::measure(std::size_t bucket_bytes) {
  GradientOptions options;
  options.average = Average::sum;  // the gradients are all 0
  options.bucket_bytes = bucket_bytes;
  if (options_.wire == "bf16") options.wire = WireType::bf16;
  if (options_.wire == "f16") options.wire = WireType::f16;
  ThreeModes modes(comm_, parameters_, options);
  std::vector<double> marks;
  Row row;
  row.measured = overlap::measure(comm_, modes, 1, options_.steps, [&](int number) {
    const double us = step_us(modes);
    const bool counts = number > 0 && modes.mode() == Mode::during;
    if (counts) marks.push_back(us / static_cast<double>(parameters_.size()));
  });
  row.mark_us = spread_of(marks).median;
  return row;
}

double Player::step_us(ThreeModes& modes) const {
  const auto start = Clock::now();
  modes.begin();
  double mark_us = 0;
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    wait_until(start, ready_us_[i]);
    const auto marked = Clock::now();
    modes.ready(i);
    mark_us += us_since(marked);
  }
  modes.finish();
  return mark_us;
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

}  // namespace rondo::overlap

#include "learner.hpp"

#include <stdexcept>

namespace lenet {
namespace {

[[noreturn]] void refuse() {
  throw std::runtime_error(
      "learners on GPUs have equal shares, one learning rate, and no parameter servers");
}

}  // namespace

float rate_at(std::size_t step, std::size_t steps, const TrainingOptions& options) {
  const double warmup = options.warmup_epochs * static_cast<double>(steps);
  const double done = static_cast<double>(step + 1);
  return done >= warmup ? options.rate : static_cast<float>(options.rate * done / warmup);
}

std::span<const float> Learner::gradients(std::span<const std::uint32_t> /*samples*/) { refuse(); }
void Learner::set_shares(std::span<const double> /*shares*/) { refuse(); }
void Learner::set_rate(float /*rate*/) { refuse(); }

}  // namespace lenet

#include "learner.hpp"

#include <stdexcept>

namespace lenet {
namespace {

[[noreturn]] void refuse() {
  throw std::runtime_error("learners on GPUs have equal shares and one learning rate");
}

}  // namespace

void Learner::set_shares(std::span<const double> /*shares*/) { refuse(); }
void Learner::set_rate(float /*rate*/) { refuse(); }
Computed Learner::computed() const { refuse(); }

}  // namespace lenet

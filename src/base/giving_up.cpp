#include "base/giving_up.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include <rondo/errors.hpp>

namespace rondo::detail {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{50};

thread_local GivingUp* of_this_thread = nullptr;

}  // namespace

GivingUp::GivingUp(const std::function<bool()>& asked)
    : asked_(asked ? &asked : nullptr), outer_(of_this_thread) {
  of_this_thread = this;
}

GivingUp::~GivingUp() { of_this_thread = outer_; }

bool GivingUp::is_said() {
  if (asked_ == nullptr || said_ || Clock::now() < next_look_) return said_;
  said_ = (*asked_)();
  next_look_ = Clock::now() + kBetweenLooks;
  return said_;
}

bool is_over(Clock::time_point deadline) {
  return Clock::now() >= deadline || (of_this_thread != nullptr && of_this_thread->is_said());
}

Clock::time_point next_look(Clock::time_point deadline) {
  if (of_this_thread == nullptr || !of_this_thread->may_be()) return deadline;
  return std::min(deadline, Clock::now() + kBetweenLooks);
}

void throw_if_given_up(GivingUp& giving_up, const char* error) {
  if (!giving_up.is_said()) return;
  throw TransportError(fmt::format(
      "this process has given up joining, as its CommunicatorOptions::give_up_if said. The join "
      "was at this: {}",
      error));
}

}  // namespace rondo::detail

// Waits of a join, which the program may give up (CommunicatorOptions::give_up_if).
#pragma once

#include <functional>

#include "base/deadline.hpp"

namespace rondo::detail {

// As long as it lives, this thread's waits for other ranks ask the program whether it gives up.
class GivingUp {
 public:
  // Borrows `asked`; an empty function: never.
  explicit GivingUp(const std::function<bool()>& asked);
  GivingUp(const GivingUp&) = delete;
  GivingUp& operator=(const GivingUp&) = delete;
  ~GivingUp();

  // Whether the program has given up so far. Asks it now and then, until it says so.
  bool is_said();
  [[nodiscard]] bool may_be() const { return asked_ != nullptr; }

 private:
  const std::function<bool()>* asked_;
  GivingUp* const outer_;
  bool said_ = false;
  Clock::time_point next_look_{};
};

// Whether a wait until `deadline` is over: it has passed, or the program has given up.
bool is_over(Clock::time_point deadline);
// Until when to wait before is_over() is asked again.
Clock::time_point next_look(Clock::time_point deadline);

// Throws in the place of `join`'s error, if the program has given up, one that says so.
void throw_if_given_up(GivingUp& giving_up, const char* error);

template <class Join>
auto unless_given_up(const std::function<bool()>& asked, const Join& join) {
  GivingUp giving_up(asked);
  try {
    return join();
  } catch (const std::exception& error) {
    throw_if_given_up(giving_up, error.what());
    throw;
  }
}

}  // namespace rondo::detail

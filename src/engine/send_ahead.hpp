// Sends the slices of one message while the rank does something else: as many as there are free
// slots, whenever it is asked. So a sendrecv sends and receives independently: neither waits for
// the other.
#pragma once

#include "engine/host_port.hpp"
#include "plan/plan.hpp"

namespace rondo::detail {

class SendAhead {
 public:
  // `port`: of the send alone.
  SendAhead(HostPort& port, const Plan& plan)
      : port_(port),
        step_(plan.schedule.step(0)),
        slicing_(plan.slicing),
        slices_(slicing_.slices(slicing_.part(0))) {}

  // Fills the next slot if it is free. Returns whether it was.
  bool advance() {
    if (sent_ == slices_ || !port_.has_free_slot(step_.to)) return false;
    send();
    return true;
  }
  // Sends what is left, and waits for slots. Throws Failure.
  void finish() {
    while (sent_ < slices_) {
      port_.acquire(step_, slice());
      send();
    }
  }

 private:
  [[nodiscard]] Range slice() const { return slicing_.slice(slicing_.part(0), sent_); }
  void send() {
    port_.move(step_, slice());
    port_.hand_on(step_, slice());
    ++sent_;
  }

  HostPort& port_;
  Step step_;
  Slicing slicing_;
  std::uint64_t slices_;
  std::uint64_t sent_ = 0;
};

// The port of a receive, which sends ahead after each slice; its waits do so by Waiter::Meanwhile.
class ReceivingPort {
 public:
  ReceivingPort(HostPort& port, SendAhead& ahead) : port_(port), ahead_(ahead) {}

  [[nodiscard]] std::uint64_t chunk_at(int position) const { return port_.chunk_at(position); }
  bool acquire(const Step& step, const Range& slice) { return port_.acquire(step, slice); }
  void move(const Step& step, const Range& slice) { port_.move(step, slice); }
  void hand_on(const Step& step, const Range& slice) {
    port_.hand_on(step, slice);
    if (!ahead_.advance()) port_.poll();
  }

 private:
  HostPort& port_;
  SendAhead& ahead_;
};
static_assert(Port<ReceivingPort>);

}  // namespace rondo::detail

// The port of an owner's schedule between hosts: takes a slice when the ranks of the host have
// reduced it, and says when it is final (engine/inside.hpp).
#pragma once

#include "engine/host_port.hpp"
#include "engine/inside.hpp"

namespace rondo::detail {

class OwnerPort {
 public:
  OwnerPort(HostPort& port, Inside& inside) : port_(port), inside_(inside) {}

  [[nodiscard]] std::uint64_t chunk_at(int position) const { return port_.chunk_at(position); }

  bool acquire(const Step& step, const Range& slice) {
    const bool reads_input = step.has(kReduce) || !step.has(kRecv);
    if (reads_input) inside_.require_reduced(step.chunk, slice);
    return port_.acquire(step, slice);
  }
  void move(const Step& step, const Range& slice) { port_.move(step, slice); }
  void hand_on(const Step& step, const Range& slice) {
    port_.hand_on(step, slice);
    if (step.has(kCopy)) inside_.note_final(step.chunk, slice);
  }

 private:
  HostPort& port_;
  Inside& inside_;
};
static_assert(Port<OwnerPort>);

}  // namespace rondo::detail

// The one loop of the library: every collective, algorithm, carrier and device goes through here.
// Host and device compile this header alike.
#pragma once

#include <concepts>
#include <cstdint>

#include "base/portable.hpp"
#include "schedule/schedule.hpp"
#include "schedule/slicing.hpp"

namespace rondo::detail {

// What the loop needs: engine/host_port.hpp on a host, protocol/device_port.hpp in a kernel.
template <class P>
concept Port = requires(P& port, const Step& step, const Range& slice, int position) {
  // The number in the vector of a chunk of the schedule, which numbers chunks by position in the ring.
  { port.chunk_at(position) } -> std::convertible_to<std::uint64_t>;
  // Waits for the slots of this slice: one that holds it, if the step receives, and a free one, if the step sends.
  // False: the port has given up and has recorded its failure elsewhere; the loop then stops at once. A host's port throws
  // its Failure in place of that.
  { port.acquire(step, slice) } -> std::same_as<bool>;
  // Copies or reduces, from and to these slots and the rank's buffers.
  port.move(step, slice);
  // Gives the slot received back to its sender, and the slot filled to its receiver.
  port.hand_on(step, slice);
};

// `Steps`: a Schedule, or a PairwiseSchedule. Returns false as soon as the port has given up.
template <class Steps, Port P>
RONDO_HOST_DEVICE bool run_schedule(const Steps& schedule, const Slicing& slicing, P& port) {
  const int steps = schedule.steps();
  const std::uint64_t turns = slicing.windows() + static_cast<std::uint64_t>(schedule.most_lag());
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    for (int index = 0; index < steps; ++index) {
      const Step step = schedule.step(index);
      const auto lag = static_cast<std::uint64_t>(step.lag);
      if (turn < lag) continue;
      // A greeting is one empty slice, and so travels in the first window.
      Range part = step.chunk == kNoChunk ? Range{} : slicing.part(port.chunk_at(step.chunk));
      if (!kOnDevice && step.chunk_count > 1) {
        const Range last = slicing.part(port.chunk_at(step.chunk + step.chunk_count - 1));
        part.count = last.offset + last.count - part.offset;
      }
      const std::uint64_t begin = (turn - lag) * slicing.window;
      const std::uint64_t available = slicing.slices(part);
      const std::uint64_t end =
          available < begin + slicing.window ? available : begin + slicing.window;
      for (std::uint64_t number = begin; number < end; ++number) {
        const Range slice = slicing.slice(part, number);
        if (!port.acquire(step, slice)) return false;
        port.move(step, slice);
        port.hand_on(step, slice);
      }
    }
  }
  return true;
}

}  // namespace rondo::detail

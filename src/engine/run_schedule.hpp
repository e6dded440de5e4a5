// The one loop of the library: every collective, algorithm, carrier and device goes through here.
// Host and device compile this header alike.
#pragma once

#include <concepts>
#include <cstdint>

#include "base/portable.hpp"
#include "schedule/due.hpp"

namespace rondo::detail {

// What the loop needs: engine/host_port.hpp on a host, protocol/device_port.hpp in a kernel.
template <class P>
concept Port = requires(P& port, const Step& step, const Range& slice, int position) {
  // The number in the vector of a chunk of the schedule, which numbers chunks by position in the
  // ring.
  { port.chunk_at(position) } -> std::convertible_to<std::uint64_t>;
  // Waits for the slots of this slice: one that holds it, if the step receives, and a free one, if
  // the step sends. False: the port has given up and has recorded its failure elsewhere; the loop
  // then stops at once. A host's port throws its Failure in place of that.
  { port.acquire(step, slice) } -> std::same_as<bool>;
  // Copies or reduces, from and to these slots and the rank's buffers.
  port.move(step, slice);
  // Gives the slot received back to its sender, and the slot filled to its receiver.
  port.hand_on(step, slice);
};

// `Steps`: a Schedule, or a PairwiseSchedule. Returns false as soon as the port has given up.
template <class Steps, Port P>
[[nodiscard]] RONDO_HOST_DEVICE bool run_schedule(const Steps& schedule, const Slicing& slicing,
                                                  P& port) {
  const auto chunk_at = [&port](int position) { return port.chunk_at(position); };
  const int phases = schedule.phases();
  for (int number = 0; number < phases; ++number) {
    const Phase phase = schedule.phase(number);
    const std::uint64_t turns = turns_of(schedule, phase, slicing, chunk_at);
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
      for (int index = phase.first; index < phase.end; ++index) {
        const Step step = schedule.step(index);
        const DueSlices due = due_slices(step, turn, slicing, chunk_at);
        for (std::uint64_t one = due.begin; one < due.end; ++one) {
          const Range slice = slicing.slice(due.part, one);
          if (!port.acquire(step, slice)) return false;
          port.move(step, slice);
          port.hand_on(step, slice);
        }
      }
    }
  }
  return true;
}

}  // namespace rondo::detail

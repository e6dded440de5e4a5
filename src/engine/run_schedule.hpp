// The one loop of the library: every collective, algorithm, carrier and device goes through here.
// Host and device compile this header alike.
//
// A Port is what the loop stands on:
//
//   chunk_at(int position)               which chunk the schedule means: its numbers are positions
//   wait_received(int from, slice)       the next slot from `from` is there, and is this slice
//   wait_free(int to)                    a slot towards `to` is free
//   move(step, slice)                    the step's verb, on this slice
//   release(int from)                    the slot received is no longer needed
//   publish(int to, slice)               the slot filled may travel
//
// A wait that returns false has given up, and says why elsewhere; the loop then stops at once.
#pragma once

#include "base/portable.hpp"
#include "schedule/schedule.hpp"
#include "schedule/slicing.hpp"

namespace rondo::detail {

template <class Port>
RONDO_HOST_DEVICE bool run_slice(const Step& step, const Range& slice, Port& port) {
  if (step.has(kRecv) && !port.wait_received(step.from, slice)) return false;
  if (step.has(kSend) && !port.wait_free(step.to)) return false;
  port.move(step, slice);
  if (step.has(kRecv)) port.release(step.from);
  if (step.has(kSend)) port.publish(step.to, slice);
  return true;
}

template <class Port>
RONDO_HOST_DEVICE bool run_schedule(const Schedule& schedule, const Slicing& slicing, Port& port) {
  const int steps = schedule.steps();
  const std::uint64_t windows = slicing.windows();
  for (std::uint64_t window = 0; window < windows; ++window) {
    for (int index = 0; index < steps; ++index) {
      const Step step = schedule.step(index);
      // A greeting is one empty slice, and so travels in the first window.
      const Range part = step.chunk == kNoChunk ? Range{} : slicing.part(port.chunk_at(step.chunk));
      const std::uint64_t begin = window * slicing.window;
      const std::uint64_t available = slicing.slices(part);
      const std::uint64_t end =
          available < begin + slicing.window ? available : begin + slicing.window;
      for (std::uint64_t number = begin; number < end; ++number) {
        if (!run_slice(step, slicing.slice(part, number), port)) return false;
      }
    }
  }
  return true;
}

}  // namespace rondo::detail

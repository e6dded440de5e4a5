// Which slices a step handles when its turn comes: turn t of a phase is window t of the slices, or,
// for a step that lags, window t - lag.
#pragma once

#include <cstdint>

#include "schedule/schedule.hpp"
#include "schedule/slicing.hpp"

namespace rondo::detail {

// Slices `begin` to `end` of this part of the vector.
struct DueSlices {
  Range part;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The part of the vector that a step handles. `chunk_at`: the number in the vector of a chunk of
// the schedule.
template <class ChunkAt>
RONDO_HOST_DEVICE constexpr Range part_of(const Step& step, const Slicing& slicing,
                                          const ChunkAt& chunk_at) {
  // A greeting is one empty slice, and so travels in the first window.
  Range part =
      step.chunk == kNoChunk ? Range{} : slicing.part(chunk_at(step.chunk), step.has(kRecv));
  if (!kOnDevice && step.chunk_count > 1) {
    const Range last = slicing.part(chunk_at(step.chunk + step.chunk_count - 1));
    part.count = last.offset + last.count - part.offset;
  }
  return part;
}

// How often all steps of a phase have their turn. `Steps`: a Schedule, or a PairwiseSchedule.
template <class Steps, class ChunkAt>
RONDO_HOST_DEVICE constexpr std::uint64_t turns_of(const Steps& steps, const Phase& phase,
                                                   const Slicing& slicing,
                                                   const ChunkAt& chunk_at) {
  if (kOnDevice || steps.phases() == 1) {
    return slicing.windows() + static_cast<std::uint64_t>(steps.most_lag());
  }
  std::uint64_t most = 0;
  for (int index = phase.first; index < phase.end; ++index) {
    const Step step = steps.step(index);
    const std::uint64_t turns =
        slicing.windows_of(part_of(step, slicing, chunk_at)) + static_cast<std::uint64_t>(step.lag);
    if (turns > most) most = turns;
  }
  return most;
}

template <class ChunkAt>
RONDO_HOST_DEVICE constexpr DueSlices due_slices(const Step& step, std::uint64_t turn,
                                                 const Slicing& slicing, const ChunkAt& chunk_at) {
  const auto lag = static_cast<std::uint64_t>(step.lag);
  if (turn < lag) return {};
  const Range part = part_of(step, slicing, chunk_at);
  const std::uint64_t begin = (turn - lag) * slicing.window;
  const std::uint64_t available = slicing.slices(part);
  const std::uint64_t end = available < begin + slicing.window ? available : begin + slicing.window;
  return {part, begin, end};
}

}  // namespace rondo::detail

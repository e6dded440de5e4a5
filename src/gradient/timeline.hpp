// What a rank did at which time, and the file that shows it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <rondo/communicator.hpp>

#include "base/deadline.hpp"

namespace rondo::detail {

// The rows of a rank in the picture.
enum class Row : std::uint8_t { compute, queue, transfer, reduce };

struct Stretch {
  Row row = Row::compute;
  std::string what;
  Clock::time_point begin;
  Clock::time_point end;
  std::uint64_t iteration = 0;  // 0: of none
  std::uint64_t bytes = 0;
};

// Collective; rank 0 writes what all ranks bring. Throws UsageError on all ranks.
void write_timelines(Communicator& communicator, const std::vector<Stretch>& mine,
                     const std::string& file);

}  // namespace rondo::detail

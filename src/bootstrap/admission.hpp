// How rank 0 of a SocketBootstrap lets in the others.
#pragma once

#include <chrono>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/meeting_point.hpp"

namespace rondo::detail {

// Listens at `place` until all ranks of `size` have come, and welcomes them. Returns their sockets,
// by rank; rank 0 has none. Rejects whoever cannot prove to be a rank, and notes the first few of
// them in the log, one for each reason. A rank whose connection closes before all have come may
// come again. Strangers who say nothing keep no rank out, however many they are: where descriptors
// run out, or strangers are too many, the one that has been silent longest goes. Throws UsageError,
// TransportError, or TimeoutError that names the ranks that have not come and who was sent away;
// sends the reason to all that have come.
std::vector<FileDescriptor> admit_ranks(const MeetingPoint& place, int size,
                                        std::chrono::milliseconds timeout,
                                        Clock::time_point deadline);

}  // namespace rondo::detail

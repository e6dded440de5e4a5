// Limits how far a host runs ahead of a device. CUDA queues about a thousand operations of a
// stream; a thread that enqueues one more waits, and holds a lock that launches of other threads
// need. A rank that runs so far ahead would block the very launches that it waits for. So the host
// waits earlier, without that lock, for an operation that was enqueued some hundreds before.
#pragma once

#include <array>
#include <cstdint>

#include "cuda/api/handles.hpp"

namespace rondo::detail::gpu {

class OperationsAhead {
 public:
  explicit OperationsAhead(int device);

  // Counts `operations`, at most 7, that have been enqueued, the last of them on `stream`, of the
  // device in use. After every 96 or a few more it records an event and waits for the event three
  // before that one, so that at most 408 operations are ahead. A reducer's stream carries the
  // reducer's own operations and its collectives', each limited by a counter of its own. On a
  // stream that is being captured it only counts. Takes the turn to enqueue itself.
  void enqueued(std::uint64_t operations, api::Stream stream);

 private:
  static constexpr std::uint64_t kPerMark = 96;
  int device_;
  std::array<OwnedEvent, 4> marks_;
  std::uint64_t since_last_mark_ = 0;
  std::uint64_t marked_ = 0;
};

}  // namespace rondo::detail::gpu

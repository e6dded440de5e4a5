// How far a host runs ahead of a device. CUDA holds about a thousand operations of a stream, and then whoever
// enqueues one more waits with a lock that other threads' launches need: a rank that ran ahead would keep those
// from starting who could let it go on. So the host waits first, for an operation of some hundreds before,
// without that lock.
#pragma once

#include <array>
#include <cstdint>

#include "api/handles.hpp"

namespace rondo::detail::gpu {

class OperationsAhead {
 public:
  explicit OperationsAhead(int device);

  // So many operations, at most 6, have been enqueued, the last of them on `stream`, of the device in use. After every
  // 96 or a few more an event is recorded; then this waits for the event three before it, so that at most 404 operations
  // are ahead. A reducer's stream carries its own and its collectives', which are bounded apart. Does nothing on a
  // stream that is being captured.
  void enqueued(std::uint64_t operations, api::Stream stream);

 private:
  static constexpr std::uint64_t kPerMark = 96;
  std::array<OwnedEvent, 4> marks_;
  std::uint64_t since_last_mark_ = 0;
  std::uint64_t marked_ = 0;
};

}  // namespace rondo::detail::gpu

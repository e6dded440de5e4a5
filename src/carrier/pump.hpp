// A carrier that has to be driven: it moves published slots to another host and fills free slots
// with what comes from there. Every wait drives it; it has no thread of its own.
#pragma once

#include <string>

namespace rondo::detail {

struct AbortRecord {
  int rank = 0;
  std::string text;
};

class Pump {
 public:
  Pump() = default;
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;
  virtual ~Pump() = default;

  // Moves what can be moved without waiting. Throws TransportError.
  virtual void progress() = 0;
  // Whether everything published by this rank has left its slots.
  [[nodiscard]] virtual bool drained() = 0;
  // Tells the ranks on other hosts that the communicator has ended, unless they know: once, in at
  // most a second.
  virtual void announce_abort(const AbortRecord& record) noexcept = 0;
  // Throw UsageError when the calling thread, or a thread of Rondo's own, may not drive this pump.
  virtual void require_this_thread() const = 0;
  virtual void require_progress_thread() const = 0;
};

}  // namespace rondo::detail

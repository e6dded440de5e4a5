// Tells whether a process of the same host has ended: the pulse that waits look at.
#pragma once

#include <memory>
#include <vector>

namespace rondo::detail {

// A process that this one watches: one descriptor, however many communicators look at it.
class WatchedProcess;

class PeerWatch {
 public:
  // Watches the process that `rank` is. Zero, or the system's error number if it cannot be watched; the rank then
  // counts as alive, and deadlines alone end a wait for it.
  int watch(int rank, int process_id);

  [[nodiscard]] bool ended(int rank) const;
  // The ranks whose processes have ended, with one question to the system.
  [[nodiscard]] std::vector<int> ended() const;

 private:
  std::vector<std::shared_ptr<const WatchedProcess>> processes_;  // by rank; null: not watched
};

// Names the process id namespace of this process: ids mean the same only within one.
unsigned long process_namespace();

}  // namespace rondo::detail

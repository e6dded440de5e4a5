// Tells whether a process of the same host has ended; waiting ranks check it.
#pragma once

#include <memory>
#include <vector>

namespace rondo::detail {

// A process that this one watches: one descriptor for all communicators of this process.
class WatchedProcess;

class PeerWatch {
 public:
  // Watches the process of `rank`. Returns zero, or the system's error number if it cannot be watched; the rank then
  // counts as alive, and only deadlines end a wait for it.
  int watch(int rank, int process_id);

  [[nodiscard]] bool ended(int rank) const;
  // The ranks whose processes have ended, by one system call.
  [[nodiscard]] std::vector<int> ended() const;

 private:
  std::vector<std::shared_ptr<const WatchedProcess>> processes_;  // by rank; null: not watched
};

// Identifies the process id namespace of this process: process ids are comparable only within one namespace.
unsigned long process_namespace();

}  // namespace rondo::detail

// Finds whether a process of the same host has ended. Ranks that wait for it ask this.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "carrier/life_sign.hpp"

namespace rondo::detail {

// A process that this one watches: one descriptor for all communicators of this process.
class WatchedProcess;

class PeerWatch {
 public:
  // Watches the process of `rank`, by its id, its sign of life, or both. The id sees through
  // children that keep copies of a socket; the sign serves where ids do not, and shows that the
  // process executes another program. `process_id`: 0 where it is not one of this process's
  // namespace; such a process counts as ended also if it closes all of its descriptors. Returns
  // zero, or the system's error number if it cannot be watched; the rank then counts as alive, and
  // only deadlines end a wait for it.
  int watch(int rank, int process_id, LifeSign life);

  // Makes one system call if the process lives and is watched by its id; then this does not see
  // that the process executes another program.
  [[nodiscard]] bool ended(int rank) const;
  // Returns the ranks whose processes have ended, or execute another program.
  [[nodiscard]] std::vector<int> ended() const;

 private:
  int watch_id(std::size_t rank, int process_id);
  // Nothing if this process cannot find it out.
  [[nodiscard]] std::optional<bool> shows_life(std::size_t rank) const;
  [[nodiscard]] bool is_gone(std::size_t rank) const;

  // Indexed by rank. Null, or 0, means that the rank is not watched in this way.
  std::vector<std::shared_ptr<const WatchedProcess>> processes_;
  std::vector<LifeSign> lives_;
};

// Identifies the process id namespace of this process: process ids are comparable only within one
// namespace.
unsigned long process_namespace();

}  // namespace rondo::detail

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
  // Watches the process of `rank`, by its id, its sign of life, or both. The id is right even if a
  // child of the process keeps a copy of its socket; the sign of life serves where ids do not, and
  // shows that the process executes another program. `process_id`: 0 if the process is in another
  // namespace of process ids; such a process counts as ended also if it closes all of its
  // descriptors. `life`: 0 for none. Returns zero, or the system's error number if the process
  // cannot be watched; the rank then counts as alive, and only deadlines end a wait for it.
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
  std::vector<LifeSign> life_signs_;
};

// Identifies the process id namespace of this process: process ids are comparable only within one
// namespace.
unsigned long process_namespace();

}  // namespace rondo::detail

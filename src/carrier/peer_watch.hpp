// Tells whether a process of the same host has ended: the pulse that waits look at.
#pragma once

#include <utility>
#include <vector>

namespace rondo::detail {

class PeerWatch {
 public:
  PeerWatch() = default;
  PeerWatch(PeerWatch&& other) noexcept : descriptors_(std::move(other.descriptors_)) {
    other.descriptors_.clear();
  }
  PeerWatch& operator=(PeerWatch&& other) noexcept {
    descriptors_.swap(other.descriptors_);
    return *this;
  }
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  ~PeerWatch();

  // Watches the process that `rank` is. Where the kernel has no pidfd_open (before Linux 5.3), the
  // rank counts as alive and deadlines alone end a wait for it.
  void watch(int rank, int process_id);

  [[nodiscard]] bool ended(int rank) const;

 private:
  std::vector<int> descriptors_;  // by rank; -1: not watched
};

// Names the process id namespace of this process: ids mean the same only within one.
unsigned long process_namespace();

}  // namespace rondo::detail

#include "carrier/peer_watch.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rondo::detail {

PeerWatch::~PeerWatch() {
  for (const int descriptor : descriptors_) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

void PeerWatch::watch(int rank, int process_id) {
  const auto index = static_cast<std::size_t>(rank);
  if (descriptors_.size() <= index) descriptors_.resize(index + 1, -1);
  descriptors_[index] = static_cast<int>(::syscall(SYS_pidfd_open, process_id, 0));
}

bool PeerWatch::ended(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= descriptors_.size() || descriptors_[index] < 0) return false;
  pollfd request{descriptors_[index], POLLIN, 0};
  // A pidfd becomes readable when its process ends.
  return ::poll(&request, 1, 0) > 0 && (request.revents & POLLIN) != 0;
}

unsigned long process_namespace() {
  struct stat facts {};
  return ::stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

}  // namespace rondo::detail

#include "carrier/peer_watch.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>

namespace rondo::detail {

class WatchedProcess {
 public:
  explicit WatchedProcess(int descriptor) : descriptor_(descriptor) {}
  WatchedProcess(const WatchedProcess&) = delete;
  WatchedProcess& operator=(const WatchedProcess&) = delete;
  ~WatchedProcess() { ::close(descriptor_); }

  // A pidfd becomes readable when its process ends.
  [[nodiscard]] pollfd request() const { return {descriptor_, POLLIN, 0}; }

 private:
  int descriptor_;
};

namespace {

// The processes that communicators of this process watch.
struct Registry {
  std::mutex mutex;
  std::map<int, std::weak_ptr<const WatchedProcess>> by_id;
};

// Never destroyed: a static communicator may be destroyed later than any static of the library.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

bool readable(const pollfd& request) { return (request.revents & POLLIN) != 0; }

}  // namespace

int PeerWatch::watch(int rank, int process_id, LifeSign life) {
  const auto index = static_cast<std::size_t>(rank);
  if (processes_.size() <= index) {
    processes_.resize(index + 1);
    lives_.resize(index + 1);
  }
  // This process needs a socket to look for that of another.
  lives_[index] = life_sign_of_this_process() != 0 ? life : 0;
  const int error = process_id > 0 ? watch_id(index, process_id) : ESRCH;
  return lives_[index] != 0 ? 0 : error;
}

int PeerWatch::watch_id(std::size_t index, int process_id) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::weak_ptr<const WatchedProcess>& known = all.by_id[process_id];
  processes_[index] = known.lock();
  if (processes_[index] != nullptr) {
    pollfd request = processes_[index]->request();
    // If that process has ended, another process may have its id by now, and is opened below.
    if (::poll(&request, 1, 0) == 0) return 0;
  }
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process_id, 0));
  if (descriptor < 0) {
    processes_[index] = nullptr;
    return errno;
  }
  processes_[index] = std::make_shared<const WatchedProcess>(descriptor);
  known = processes_[index];
  return 0;
}

bool PeerWatch::ended(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= processes_.size()) return false;
  if (lives_[index] != 0 && !shows_life(lives_[index])) return true;
  if (processes_[index] == nullptr) return false;
  pollfd request = processes_[index]->request();
  return ::poll(&request, 1, 0) > 0 && readable(request);
}

std::vector<int> PeerWatch::ended() const {
  std::vector<int> result;
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    if (ended(static_cast<int>(rank))) result.push_back(static_cast<int>(rank));
  }
  return result;
}

unsigned long process_namespace() {
  struct stat facts{};
  return ::stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

}  // namespace rondo::detail

#include "carrier/peer_watch.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace rondo::detail {

class WatchedProcess {
 public:
  WatchedProcess(int descriptor, int id) : descriptor_(descriptor), id_(id), program_(program()) {}
  WatchedProcess(const WatchedProcess&) = delete;
  WatchedProcess& operator=(const WatchedProcess&) = delete;
  ~WatchedProcess() { ::close(descriptor_); }

  // A pidfd becomes readable when its process ends.
  [[nodiscard]] pollfd request() const { return {descriptor_, POLLIN, 0}; }
  // Whether the process, which has not ended, executes the program that it executed when it was first watched.
  [[nodiscard]] bool executes_the_same() const { return program() == program_; }

 private:
  // Its file's numbers; zeros where the system does not tell.
  [[nodiscard]] std::pair<dev_t, ino_t> program() const {
    struct stat facts{};
    const std::string link = "/proc/" + std::to_string(id_) + "/exe";
    if (::stat(link.c_str(), &facts) != 0) return {};
    return {facts.st_dev, facts.st_ino};
  }

  int descriptor_;
  int id_;
  std::pair<dev_t, ino_t> program_;
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
  processes_[index] = std::make_shared<const WatchedProcess>(descriptor, process_id);
  known = processes_[index];
  return 0;
}

bool PeerWatch::ended(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= processes_.size()) return false;
  const WatchedProcess* process = processes_[index].get();
  if (process == nullptr) return lives_[index] != 0 && !shows_life(lives_[index]);
  pollfd request = process->request();
  return ::poll(&request, 1, 0) > 0 && readable(request);
}

std::vector<int> PeerWatch::ended() const {
  std::vector<int> result;
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    const auto rank = static_cast<int>(index);
    const WatchedProcess* process = processes_[index].get();
    // A process without its sign that lives has closed it, as programs do that close every descriptor, or executes another
    // program.
    const bool executes_another = process != nullptr && lives_[index] != 0 &&
                                  !shows_life(lives_[index]) && !process->executes_the_same();
    if (executes_another || ended(rank)) result.push_back(rank);
  }
  return result;
}

unsigned long process_namespace() {
  struct stat facts{};
  return ::stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

}  // namespace rondo::detail

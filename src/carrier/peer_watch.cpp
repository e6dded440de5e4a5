#include "carrier/peer_watch.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace rondo::detail {

namespace {

// What tells a process, and the program that it executes, from others; zeros where the system does not say it.
struct ProcessFacts {
  std::uint64_t started = 0;  // when: another process may get the id of one that has ended
  std::uint64_t stack =
      0;  // where its stack begins, which differs each time that it executes a program
  std::pair<dev_t, ino_t> program{};  // the file that it executes

  bool operator==(const ProcessFacts&) const = default;
};

// Fields of /proc/ID/stat, counted from the one after the name, which may hold anything.
constexpr int kStarted = 19;
constexpr int kStack = 25;

// Nothing if this process cannot look, since it has no descriptor left, say.
std::optional<ProcessFacts> facts_of(int id) {
  const std::string folder = "/proc/" + std::to_string(id);
  ProcessFacts facts;
  std::ifstream file(folder + "/stat");
  if (!file) return errno == ENOENT ? std::optional(facts) : std::nullopt;
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string field;
  for (int i = 0; i <= kStack && fields >> field; ++i) {
    if (i == kStarted) facts.started = std::strtoull(field.c_str(), nullptr, 10);
    if (i == kStack) facts.stack = std::strtoull(field.c_str(), nullptr, 10);
  }
  struct stat program{};
  if (::stat((folder + "/exe").c_str(), &program) == 0) {
    facts.program = {program.st_dev, program.st_ino};
  }
  return facts;
}

}  // namespace

class WatchedProcess {
 public:
  // `descriptor`: a pidfd, or -1 where the system gives none.
  WatchedProcess(int descriptor, int id, const ProcessFacts& facts)
      : descriptor_(descriptor), id_(id), facts_(facts) {}
  WatchedProcess(const WatchedProcess&) = delete;
  WatchedProcess& operator=(const WatchedProcess&) = delete;
  ~WatchedProcess() {
    if (has_pidfd()) ::close(descriptor_);
  }

  // By one system call, as long as the process lives. Nothing if it has no pidfd any more.
  [[nodiscard]] std::optional<bool> has_ended() const {
    if (descriptor_ < 0) return std::nullopt;
    pollfd request{descriptor_, POLLIN, 0};  // readable when its process ends
    if (::poll(&request, 1, 0) == 0) return false;
    if (!has_pidfd()) return std::nullopt;
    return (request.revents & POLLIN) != 0;
  }
  // Whether there is this process still, and executes the program that it executed when it was first watched, or this process
  // cannot tell.
  [[nodiscard]] bool is_as_it_was() const {
    const std::optional<ProcessFacts> now = facts_of(id_);
    return !now || *now == facts_;
  }

 private:
  // The program may have closed the descriptor, and have opened something else that has its number now.
  [[nodiscard]] bool has_pidfd() const {
    return descriptor_ >= 0 && (::syscall(SYS_pidfd_send_signal, descriptor_, 0, nullptr, 0) == 0 ||
                                (errno != EBADF && errno != EINVAL));
  }

  int descriptor_;
  int id_;
  ProcessFacts facts_;
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
  // If that process has ended, another process may have its id by now, and is opened below.
  if (processes_[index] != nullptr && processes_[index]->has_ended() == false) return 0;
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process_id, 0));
  const int error = errno;
  const ProcessFacts facts = facts_of(process_id).value_or(ProcessFacts{});
  processes_[index] = nullptr;
  if (descriptor < 0 && facts == ProcessFacts{}) return error;
  processes_[index] = std::make_shared<const WatchedProcess>(descriptor, process_id, facts);
  known = processes_[index];
  return 0;
}

bool PeerWatch::shows_no_life(std::size_t index) const {
  return lives_[index] != 0 && !shows_life(lives_[index]);
}

bool PeerWatch::ended(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= processes_.size()) return false;
  const WatchedProcess* process = processes_[index].get();
  if (process == nullptr) return shows_no_life(index);
  if (const std::optional<bool> ended = process->has_ended()) return *ended;
  return (lives_[index] == 0 || shows_no_life(index)) && !process->is_as_it_was();
}

std::vector<int> PeerWatch::ended() const {
  std::vector<int> result;
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    const auto rank = static_cast<int>(index);
    const WatchedProcess* process = processes_[index].get();
    // A process without its sign that lives has closed it, as programs do that close every descriptor, or executes another
    // program.
    const bool executes_another =
        process != nullptr && shows_no_life(index) && !process->is_as_it_was();
    if (executes_another || ended(rank)) result.push_back(rank);
  }
  return result;
}

unsigned long process_namespace() {
  struct stat facts{};
  return ::stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

}  // namespace rondo::detail

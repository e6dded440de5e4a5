#include "carrier/peer_watch.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "base/index.hpp"

namespace rondo::detail {

namespace {

// What distinguishes a process, and the program that it executes, from others; zeros where the
// system does not say it.
struct ProcessFacts {
  bool lives = false;
  std::uint64_t started = 0;  // when: another process may get the id of one that has ended
  std::uint64_t stack = 0;    // where its stack begins: each program has another place, where the
                              // system makes it random
  std::pair<dev_t, ino_t> program{};  // the file that it executes
};

// Fields of /proc/ID/stat, counted from the one after the name, which may hold anything.
constexpr int kState = 0;
constexpr int kThreads = 17;
constexpr int kStarted = 19;
constexpr int kStack = 25;

// Nothing if this process cannot look, since it has no descriptor left, say.
std::optional<ProcessFacts> facts_of(int id) {
  const std::string folder = "/proc/" + std::to_string(id);
  std::ifstream file(folder + "/stat");
  if (!file) return errno == ENOENT ? std::optional(ProcessFacts()) : std::nullopt;
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return ProcessFacts();  // it has ended just now
  std::istringstream words(text.substr(name_end + 1));
  const std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
  if (fields.size() <= kStack) return std::nullopt;
  const auto number = [&](int field) {
    return std::strtoull(fields[Index(field)].c_str(), nullptr, 10);
  };
  ProcessFacts facts;
  // A process whose first thread has ended looks like one that has ended, except that it has
  // others.
  facts.lives = (fields[kState] != "Z" && fields[kState] != "X") || number(kThreads) > 1;
  facts.started = number(kStarted);
  facts.stack = number(kStack);
  struct stat program{};
  if (::stat((folder + "/exe").c_str(), &program) == 0) {
    facts.program = {program.st_dev, program.st_ino};
  }
  return facts;
}

// A fact that the system gives for only one of them does not count as a difference.
bool execute_the_same(const ProcessFacts& a, const ProcessFacts& b) {
  const bool other_stack = a.stack != b.stack && a.stack != 0 && b.stack != 0;
  const bool other_program =
      a.program != b.program && a.program.second != 0 && b.program.second != 0;
  return a.started == b.started && !other_stack && !other_program;
}

// Whether the pidfd is not known to be that of another process than `id`. One that has ended and
// was waited for has no id any more.
bool may_be_pidfd_of(int id, int descriptor) {
  std::ifstream file("/proc/self/fdinfo/" + std::to_string(descriptor));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("Pid:")) continue;
    const long found = std::strtol(line.c_str() + std::strlen("Pid:"), nullptr, 10);
    return found == id || found <= 0;
  }
  return true;
}

}  // namespace

class WatchedProcess {
 public:
  // `descriptor`: a pidfd, or -1 where the system gives none.
  WatchedProcess(int descriptor, int id, const std::optional<ProcessFacts>& facts)
      : descriptor_(descriptor), id_(id), facts_(facts) {}
  WatchedProcess(const WatchedProcess&) = delete;
  WatchedProcess& operator=(const WatchedProcess&) = delete;
  ~WatchedProcess() {
    if (has_pidfd() && may_be_pidfd_of(id_, descriptor_)) ::close(descriptor_);
  }

  // False if the program has closed the descriptor, even if something else has its number now.
  [[nodiscard]] bool has_pidfd() const {
    return descriptor_ >= 0 && (::syscall(SYS_pidfd_send_signal, descriptor_, 0, nullptr, 0) == 0 ||
                                (errno != EBADF && errno != EINVAL));
  }
  // Makes one system call as long as the process lives. Returns nothing if the pidfd does not work
  // any more.
  [[nodiscard]] std::optional<bool> has_ended() const {
    if (descriptor_ < 0) return std::nullopt;
    pollfd request{descriptor_, POLLIN, 0};  // readable when its process ends
    if (::poll(&request, 1, 0) == 0) return false;
    if (!has_pidfd() || !may_be_pidfd_of(id_, descriptor_)) return std::nullopt;
    return (request.revents & POLLIN) != 0;
  }
  // Whether the process still exists and executes the program that it executed when it was first
  // watched. Also true if this process cannot find that out.
  [[nodiscard]] bool is_as_it_was() const {
    if (!facts_) return true;
    const std::optional<ProcessFacts> now = facts_of(id_);
    return !now || (now->lives && execute_the_same(*now, *facts_));
  }

 private:
  int descriptor_;
  int id_;
  std::optional<ProcessFacts> facts_;  // nothing: unknown
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
  const Index index(rank);
  if (processes_.size() <= index) {
    processes_.resize(index + 1);
    life_signs_.resize(index + 1);
  }
  // A process without a sign of life of its own cannot look for that of another.
  life_signs_[index] = life_sign_of_this_process() != 0 ? life : 0;
  const int error = process_id > 0 ? watch_id(index, process_id) : ESRCH;
  return life_signs_[index] != 0 ? 0 : error;
}

int PeerWatch::watch_id(std::size_t index, int process_id) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::weak_ptr<const WatchedProcess>& known = all.by_id[process_id];
  processes_[index] = known.lock();
  // If that process has ended, another process may have its id by now, and is opened below.
  const WatchedProcess* watched = processes_[index].get();
  if (watched != nullptr && watched->has_pidfd() && watched->has_ended() == false) return 0;
  std::optional<ProcessFacts> facts = facts_of(process_id);
  if (facts && !facts->lives) facts.reset();  // also without /proc
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process_id, 0));
  const int error = errno;
  processes_[index] = nullptr;
  if (descriptor < 0 && (error == ESRCH || !facts)) return error;
  processes_[index] = std::make_shared<const WatchedProcess>(descriptor, process_id, facts);
  known = processes_[index];
  return 0;
}

std::optional<bool> PeerWatch::shows_life(std::size_t index) const {
  return life_signs_[index] == 0 ? std::nullopt : detail::shows_life(life_signs_[index]);
}

bool PeerWatch::ended(int rank) const {
  const Index index(rank);
  if (index >= processes_.size()) return false;
  const WatchedProcess* process = processes_[index].get();
  const std::optional<bool> by_id = process == nullptr ? std::nullopt : process->has_ended();
  return by_id ? *by_id : is_gone(index);
}

// A process that lives without its sign has closed it, as programs do that close every descriptor,
// or executes another program.
bool PeerWatch::is_gone(std::size_t index) const {
  const WatchedProcess* process = processes_[index].get();
  const std::optional<bool> life = shows_life(index);
  if (process == nullptr) return life == false;
  const std::optional<bool> by_id = process->has_pidfd() ? process->has_ended() : std::nullopt;
  if (by_id == true) return true;
  if (life == true || (!life && by_id)) return false;
  return !process->is_as_it_was();
}

std::vector<int> PeerWatch::ended() const {
  std::vector<int> result;
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    if (is_gone(index)) result.push_back(static_cast<int>(index));
  }
  return result;
}

unsigned long process_namespace() {
  struct stat facts{};
  return ::stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

}  // namespace rondo::detail

#include "bootstrap/admission.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <list>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/giving_up.hpp"
#include "base/index.hpp"
#include "base/log.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/local_socket.hpp"
#include "bootstrap/sockets.hpp"
#include "bootstrap/stranger.hpp"
#include "bootstrap/watch.hpp"
#include "bootstrap/who_came.hpp"

namespace rondo::detail {
namespace {

// Rank 0 keeps so many connections of strangers, beside one for each rank. A stranger is a process
// that has not proven yet that it is a rank.
constexpr std::size_t kMostStrangers = 1024;
// Rank 0 accepts so many connections before it reads again from those that it has.
constexpr int kMostAtOnce = 256;
// How long rank 0 accepts no connection, where it can keep no more strangers and may send none
// away.
constexpr std::chrono::milliseconds kFullFor{20};
// How often rank 0 looks whether it is still the one that others find.
constexpr std::chrono::milliseconds kBetweenLooks{200};

class Admission {
 public:
  Admission(const MeetingPoint& place, int size, std::chrono::milliseconds timeout,
            Clock::time_point deadline)
      : place_(place),
        size_(size),
        timeout_(timeout),
        deadline_(deadline),
        run_(run_name(place.run)),
        listening_(place.listen(deadline)),
        ranks_(static_cast<std::size_t>(size)) {}

  std::vector<FileDescriptor> run();

 private:
  // Where connections come in.
  struct Door {
    const FileDescriptor& listener;
    std::shared_ptr<Watch> watch;
    asio::steady_timer pause;
  };
  struct Newcomer {
    Stranger stranger;
    std::shared_ptr<Watch> watch = nullptr;
  };
  struct Admitted {
    FileDescriptor socket = FileDescriptor();
    std::uint64_t process = 0;
    std::shared_ptr<Watch> watch = nullptr;  // notices that the rank leaves
  };

  void admit_all();
  void open(Door& door);
  void look_again();
  void require_first_place() const;
  // Takes in who has connected; false if rank 0 can keep no more.
  bool let_in(const FileDescriptor& listener);
  void receive(FileDescriptor socket);
  // Sends the one away that has waited longest, of those who may be; false if there is none.
  bool make_room();
  void attend(const std::shared_ptr<Newcomer>& newcomer);
  // Reads what the stranger has sent, and replies; never blocks. Returns false if it was admitted
  // or rejected: the caller then drops it, which closes a rejected one's socket. Throws UsageError,
  // which ends the admission of all ranks, if it is a rank that does not fit.
  bool read_from(Newcomer& newcomer);
  void admit(Newcomer& newcomer);
  void note_rejected(const Stranger& stranger, const std::string& why);
  void watch(std::size_t rank);
  void notice_if_it_left(std::size_t rank);
  [[nodiscard]] bool all_admitted() const { return admitted_ + 1 == ranks_.size(); }
  void answer_all(const std::exception_ptr& refusal) noexcept;
  [[noreturn]] void throw_missing() const;

  const MeetingPoint& place_;
  int size_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  Run run_;
  asio::io_context network_{1};
  asio::steady_timer next_look_{network_};
  Listening listening_;
  std::list<Door> doors_;
  std::vector<std::shared_ptr<Newcomer>> strangers_;
  std::vector<Admitted> ranks_;  // by rank; rank 0 is none of them
  std::size_t admitted_ = 0;
  std::vector<FileDescriptor> refused_;  // ranks that make all fail, and that get the reason
  WhoCame notes_;
};

std::vector<FileDescriptor> Admission::run() {
  try {
    admit_all();
    if (listening_.refusal != nullptr) std::rethrow_exception(listening_.refusal);
  } catch (const std::system_error& error) {
    answer_all(std::make_exception_ptr(cannot_watch(place_.caller, error)));
    throw;
  } catch (...) {
    answer_all(std::current_exception());
    throw;
  }
  answer_all(nullptr);
  std::vector<FileDescriptor> sockets;
  for (Admitted& rank : ranks_) {
    rank.watch.reset();
    sockets.push_back(std::move(rank.socket));
  }
  return sockets;
}

void Admission::admit_all() {
  if (all_admitted()) return;
  for (const FileDescriptor& listener : listening_.listeners) {
    open(doors_.emplace_back(
        Door{listener, std::make_shared<Watch>(network_, listener), asio::steady_timer(network_)}));
  }
  look_again();
  while (!all_admitted() && !is_over(deadline_)) {
    run_until(network_, deadline_);
    // The last may have come when another had just left.
    for (std::size_t rank = 1; rank < ranks_.size(); ++rank) notice_if_it_left(rank);
  }
  // What has come until now is still read.
  network_.restart();
  for (std::size_t i = 0; i < kMostStrangers && !all_admitted() && network_.poll_one() > 0;) ++i;
  if (!all_admitted() && listening_.refusal == nullptr) throw_missing();
  require_first_place();
}

void Admission::open(Door& door) {
  Watch::wait(door.watch, [this, &door] {
    if (let_in(door.listener)) {
      open(door);
      return;
    }
    door.pause.expires_after(kFullFor);
    door.pause.async_wait([this, &door](std::error_code code) {
      if (!code) open(door);
    });
  });
}

void Admission::look_again() {
  require_first_place();
  next_look_.expires_after(kBetweenLooks);
  next_look_.async_wait([this](std::error_code code) {
    if (!code) look_again();
  });
}

void Admission::require_first_place() const {
  const std::string objection = listening_.objection();
  if (!objection.empty()) throw UsageError(objection);
}

bool Admission::let_in(const FileDescriptor& listener) {
  for (int come = 0; come < kMostAtOnce; ++come) {
    if (strangers_.size() >= kMostStrangers + ranks_.size() && !make_room()) return false;
    FileDescriptor socket(
        ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid() && (errno == EMFILE || errno == ENFILE)) {
      const int code = errno;
      if (make_room()) continue;
      if (!strangers_.empty()) return false;  // until one of the strangers has been admitted
      throw TransportError(
          fmt::format("{}: rank 0 cannot take in more ranks: {}; allow more open files (ulimit -n)",
                      place_.caller, std::strerror(code)));
    }
    if (!socket.valid()) break;
    receive(std::move(socket));
  }
  return true;
}

void Admission::receive(FileDescriptor socket) {
  const bool local = is_local(socket);
  const std::string objection = local ? objection_to_peer(socket) : "";
  std::string name = local ? "a process" : text_of(peer_address_of(socket));
  ServerHandshake handshake(listening_.secret, run_, introduce(!listening_.secret.empty()),
                            place_.is_of_one_run);
  const auto newcomer = std::make_shared<Newcomer>(
      Newcomer{Stranger(std::move(socket), std::move(name), std::move(handshake))});
  if (!objection.empty()) {
    note_rejected(newcomer->stranger, objection);
  } else if (read_from(*newcomer)) {  // a rank speaks as soon as it has connected
    newcomer->watch = std::make_shared<Watch>(network_, newcomer->stranger.socket());
    strangers_.push_back(newcomer);
    attend(newcomer);
  }
}

bool Admission::make_room() {
  const Clock::time_point now = Clock::now();
  auto oldest = strangers_.end();
  for (auto one = strangers_.begin(); one != strangers_.end(); ++one) {
    if (!(*one)->stranger.may_be_sent_away(now)) continue;
    const bool older =
        oldest == strangers_.end() || (*one)->stranger.came() < (*oldest)->stranger.came();
    if (older) oldest = one;
  }
  if (oldest == strangers_.end()) return false;
  note_rejected((*oldest)->stranger, "it did not say who it is, and others came");
  strangers_.erase(oldest);
  return true;
}

void Admission::attend(const std::shared_ptr<Newcomer>& newcomer) {
  Watch::wait(newcomer->watch, [this, one = std::weak_ptr(newcomer)] {
    const std::shared_ptr<Newcomer> speaks = one.lock();
    if (speaks == nullptr) return;
    if (read_from(*speaks)) {
      attend(speaks);
    } else {
      std::erase(strangers_, speaks);
    }
  });
}

bool Admission::read_from(Newcomer& newcomer) {
  Stranger& stranger = newcomer.stranger;
  const std::string objection = stranger.read_and_reply();
  if (!objection.empty()) {
    note_rejected(stranger, objection);
    return false;
  }
  if (stranger.hello() == nullptr) return true;
  admit(newcomer);
  return false;
}

// Only notes it: the socket closes when the caller drops the stranger.
void Admission::note_rejected(const Stranger& stranger, const std::string& why) {
  if (!notes_.add(stranger.name(), why)) return;
  log(LogLevel::warning, "{}: rank 0 sends {} away that came to {}: {}", place_.caller,
      stranger.name(), place_.name, why);
}

void Admission::admit(Newcomer& newcomer) {
  const Hello hello = *newcomer.stranger.hello();
  const bool fits = hello.rank > 0 && hello.rank < size_ && hello.size == size_;
  const auto place = static_cast<std::size_t>(fits ? hello.rank : 0);
  Admitted& rank = ranks_[place];
  newcomer.watch.reset();
  // A rank that has lost its connection comes again, perhaps before rank 0 knows that.
  const bool comes_again = fits && rank.socket.valid() && rank.process == hello.process;
  if (!fits || (rank.socket.valid() && !comes_again && !has_hung_up(rank.socket))) {
    refused_.push_back(newcomer.stranger.take_socket());
    throw UsageError(
        fmt::format("{}: somebody came to {} as rank {} of {}, but rank 0 was told of {} ranks, "
                    "each of which comes once",
                    place_.caller, place_.name, hello.rank, hello.size, size_));
  }
  admitted_ += rank.socket.valid() ? 0 : 1;
  rank.watch.reset();
  rank.socket = newcomer.stranger.take_socket();
  rank.process = hello.process;
  rank.watch = std::make_shared<Watch>(network_, rank.socket);
  watch(place);
  if (all_admitted()) network_.stop();
}

// A rank that is admitted says nothing until it gets its answer.
void Admission::watch(std::size_t rank) {
  Watch::wait(ranks_[rank].watch, [this, rank] {
    notice_if_it_left(rank);
    if (ranks_[rank].socket.valid() && !has_bytes(ranks_[rank].socket)) watch(rank);
  });
}

void Admission::notice_if_it_left(std::size_t rank) {
  if (!ranks_[rank].socket.valid() || !has_hung_up(ranks_[rank].socket)) return;
  ranks_[rank] = {};
  --admitted_;
  static_cast<void>(notes_.add(fmt::format("rank {}", rank), "it came and left"));
}

void Admission::answer_all(const std::exception_ptr& refusal) noexcept {
  Reply answer = answer_for(refusal);
  try {
    answer.introduction = introduce(!listening_.secret.empty());
    answer.run = run_;
    // Also those whose connection was not accepted yet, and those who have not proven who they are.
    for (const FileDescriptor& listener : listening_.listeners) {
      if (refusal != nullptr) static_cast<void>(let_in(listener));
    }
  } catch (const std::exception&) {
    // No file descriptors are left to accept them.
  }
  const auto tell = [&](const FileDescriptor& socket) {
    // The answer fits the buffer of a new socket. A rank that has left is noticed when blobs are
    // exchanged.
    if (socket.valid())
      static_cast<void>(::send(socket.get(), &answer, sizeof(answer), MSG_NOSIGNAL));
  };
  for (const Admitted& rank : ranks_) tell(rank.socket);
  for (const FileDescriptor& socket : refused_) tell(socket);
  if (refusal == nullptr) return;
  for (const auto& newcomer : strangers_) tell(newcomer->stranger.socket());
}

void Admission::throw_missing() const {
  std::string missing;
  for (int rank = 1; rank < size_; ++rank) {
    if (ranks_[Index(rank)].socket.valid()) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  throw TimeoutError(
      fmt::format("rank 0 waited {} ms at {} for ranks that did not come: {}{}. (If they are "
                  "running, have they joined another process that is rank 0 there?)",
                  timeout_.count(), place_.name, missing, notes_.text()));
}

}  // namespace

std::vector<FileDescriptor> admit_ranks(const MeetingPoint& place, int size,
                                        std::chrono::milliseconds timeout,
                                        Clock::time_point deadline) {
  try {
    return Admission(place, size, timeout, deadline).run();
  } catch (const std::system_error& error) {
    throw cannot_watch(place.caller, error);
  }
}

}  // namespace rondo::detail

#include "bootstrap/admission.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/index.hpp"
#include "base/log.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/sockets.hpp"
#include "bootstrap/stranger.hpp"

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
// How many reasons for which strangers were sent away the error names, if a rank never comes.
constexpr std::size_t kMostNotes = 4;
// How often rank 0 looks whether it is still the one that others find.
constexpr std::chrono::milliseconds kBetweenLooks{200};

class Admission {
 public:
  Admission(MeetingPoint& place, int size, std::chrono::milliseconds timeout,
            Clock::time_point deadline)
      : place_(place), size_(size), timeout_(timeout), deadline_(deadline) {}

  std::vector<FileDescriptor> run();

 private:
  void admit_all();
  // Waits until somebody has something to say, and notes who; false when the deadline has passed.
  bool wait_for_any();
  void let_in();
  // Sends the one away that has waited longest, of those who may be; false if there is none.
  bool make_room();
  void read_ready();
  // Reads what the stranger has sent. False if it is no stranger any more, since it was admitted or
  // sent away.
  bool read_from(Stranger& stranger);
  void admit(Stranger& stranger);
  void send_away(const Stranger& stranger, const std::string& why);
  void drop_ranks_that_left();
  [[nodiscard]] bool all_admitted() const { return admitted_ + 1 == ranks_.size(); }
  void answer_all(const std::exception_ptr& refusal) noexcept;
  [[noreturn]] void throw_missing() const;

  MeetingPoint& place_;
  int size_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  Run run_{};
  std::vector<FileDescriptor> listeners_;
  std::vector<Stranger> strangers_;
  std::vector<FileDescriptor> ranks_;     // their sockets, by rank; rank 0 has none
  std::vector<std::uint64_t> processes_;  // by rank
  std::size_t admitted_ = 0;
  std::vector<FileDescriptor> refused_;  // ranks that make all fail, and that get the reason
  std::vector<std::string> notes_;
  // What wait_for_any() asks poll(), of the strangers first, and then of these ranks; and what it
  // has found.
  std::vector<pollfd> requests_;
  std::vector<std::size_t> asked_ranks_;
  std::vector<std::size_t> ready_strangers_;  // places in strangers_, ascending
  std::vector<std::size_t> ready_ranks_;      // ranks
  Clock::time_point full_until_;
  bool is_late_ = false;
};

std::vector<FileDescriptor> Admission::run() {
  listeners_ = place_.listen(deadline_);
  ranks_.resize(static_cast<std::size_t>(size_));
  processes_.resize(ranks_.size());
  run_ = run_name(place_.run());
  try {
    admit_all();
    if (place_.refusal() != nullptr) std::rethrow_exception(place_.refusal());
  } catch (...) {
    answer_all(std::current_exception());
    place_.close();
    throw;
  }
  answer_all(nullptr);
  place_.close();
  return std::move(ranks_);
}

void Admission::admit_all() {
  while (!all_admitted()) {
    if (!wait_for_any()) {
      if (place_.refusal() != nullptr) return;
      throw_missing();
    }
    const std::string objection = place_.objection_to_myself();
    if (!objection.empty()) throw UsageError(objection);
    read_ready();
    drop_ranks_that_left();
    let_in();
  }
}

// poll() takes no more requests than the process may open files, so there are none for ranks
// without a socket.
bool Admission::wait_for_any() {
  requests_.clear();
  asked_ranks_.clear();
  const bool full = Clock::now() < full_until_;
  for (const Stranger& stranger : strangers_)
    requests_.push_back({stranger.socket().get(), POLLIN, 0});
  for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank].valid()) continue;
    asked_ranks_.push_back(rank);
    requests_.push_back({ranks_[rank].get(), POLLRDHUP, 0});
  }
  for (const FileDescriptor& listener : listeners_) {
    if (!full) requests_.push_back({listener.get(), POLLIN, 0});
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
  const auto wait = std::clamp<std::chrono::milliseconds>(left + std::chrono::milliseconds(1),
                                                          std::chrono::milliseconds(0),
                                                          full ? kFullFor : kBetweenLooks);
  const bool any = ::poll(requests_.data(), requests_.size(), static_cast<int>(wait.count())) > 0;
  ready_strangers_.clear();
  ready_ranks_.clear();
  for (std::size_t i = 0; any && i < strangers_.size() + asked_ranks_.size(); ++i) {
    if (requests_[i].revents == 0) continue;
    if (i < strangers_.size()) {
      ready_strangers_.push_back(i);
    } else {
      ready_ranks_.push_back(asked_ranks_[i - strangers_.size()]);
    }
  }
  if (left.count() >= 0) return true;
  return any && !std::exchange(is_late_, true);  // what has come until now is still read
}

void Admission::let_in() {
  if (Clock::now() < full_until_) return;
  for (const FileDescriptor& listener : listeners_) {
    for (int come = 0; come < kMostAtOnce; ++come) {
      if (strangers_.size() >= kMostStrangers + ranks_.size() && !make_room()) {
        full_until_ = Clock::now() + kFullFor;
        break;
      }
      FileDescriptor socket(
          ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid() && (errno == EMFILE || errno == ENFILE)) {
        const int code = errno;
        if (make_room()) continue;
        if (strangers_.empty()) {
          throw TransportError(
              fmt::format("{}: rank 0 cannot take in more ranks: {}; allow more open files "
                          "(ulimit -n)",
                          place_.caller(), std::strerror(code)));
        }
        full_until_ = Clock::now() + kFullFor;  // until one of the strangers has been admitted
      }
      if (!socket.valid()) break;
      const std::string objection = place_.objection_to_stranger(socket);
      std::string name = place_.stranger_name(socket);
      Stranger stranger(std::move(socket), std::move(name), place_.secret(), run_,
                        place_.is_of_one_run());
      if (!objection.empty()) {
        send_away(stranger, objection);
      } else if (read_from(stranger)) {  // a rank speaks as soon as it has connected
        strangers_.push_back(std::move(stranger));
      }
    }
  }
}

bool Admission::make_room() {
  const Clock::time_point now = Clock::now();
  auto oldest = strangers_.end();
  for (auto one = strangers_.begin(); one != strangers_.end(); ++one) {
    if (!one->may_be_sent_away(now)) continue;
    if (oldest == strangers_.end() || one->came() < oldest->came()) oldest = one;
  }
  if (oldest == strangers_.end()) return false;
  send_away(*oldest, "it did not say who it is, and others came");
  std::swap(*oldest, strangers_.back());
  strangers_.pop_back();
  return true;
}

void Admission::read_ready() {
  // The loop begins at the last one, so that the indexes of those that are still to be read stay as
  // they are.
  for (auto place = ready_strangers_.rbegin(); place != ready_strangers_.rend(); ++place) {
    if (read_from(strangers_[*place])) continue;
    std::swap(strangers_[*place], strangers_.back());
    strangers_.pop_back();
  }
}

bool Admission::read_from(Stranger& stranger) {
  const std::string objection = stranger.listen();
  if (!objection.empty()) {
    send_away(stranger, objection);
    return false;
  }
  if (stranger.hello() == nullptr) return true;
  admit(stranger);
  return false;
}

// Logs only the first ones of each kind, since strangers may be many.
void Admission::send_away(const Stranger& stranger, const std::string& why) {
  const bool known = std::any_of(notes_.begin(), notes_.end(),
                                 [&](const std::string& note) { return note.ends_with(why); });
  if (known || notes_.size() == kMostNotes) return;
  notes_.push_back(fmt::format("{}: {}", stranger.name(), why));
  log(LogLevel::warning, "{}: rank 0 sends {} away that came to {}: {}", place_.caller(),
      stranger.name(), place_.name(), why);
}

void Admission::admit(Stranger& stranger) {
  const Hello hello = *stranger.hello();
  const bool fits = hello.rank > 0 && hello.rank < size_ && hello.size == size_;
  const auto place = static_cast<std::size_t>(fits ? hello.rank : 0);
  FileDescriptor& socket = ranks_[place];
  // A rank that has lost its connection comes again, perhaps before rank 0 knows that.
  const bool comes_again = fits && socket.valid() && processes_[place] == hello.process;
  if (!fits || (socket.valid() && !comes_again && !has_hung_up(socket))) {
    refused_.push_back(stranger.take_socket());
    throw UsageError(
        fmt::format("{}: somebody came to {} as rank {} of {}, but rank 0 was told of {} ranks, "
                    "each of which comes once",
                    place_.caller(), place_.name(), hello.rank, hello.size, size_));
  }
  admitted_ += socket.valid() ? 0 : 1;
  socket = stranger.take_socket();
  processes_[place] = hello.process;
}

void Admission::drop_ranks_that_left() {
  for (const std::size_t rank : ready_ranks_) {
    if (!ranks_[rank].valid() || !has_hung_up(ranks_[rank])) continue;
    ranks_[rank] = FileDescriptor();
    --admitted_;
    if (notes_.size() < kMostNotes) notes_.push_back(fmt::format("rank {} came and left", rank));
  }
}

void Admission::answer_all(const std::exception_ptr& refusal) noexcept {
  Reply answer = answer_for(refusal);
  try {
    answer.introduction = introduce(!place_.secret().empty());
    answer.run = run_;
    // Also those whose connection was not accepted yet, and those who have not proven who they are.
    if (refusal != nullptr) let_in();
  } catch (const Error&) {
    // No file descriptors are left to accept them.
  }
  const auto tell = [&](const FileDescriptor& socket) {
    // The answer fits the buffer of a new socket. A rank that has left is noticed when blobs are
    // exchanged.
    if (socket.valid())
      static_cast<void>(::send(socket.get(), &answer, sizeof(answer), MSG_NOSIGNAL));
  };
  for (const FileDescriptor& socket : ranks_) tell(socket);
  for (const FileDescriptor& socket : refused_) tell(socket);
  if (refusal == nullptr) return;
  for (const Stranger& stranger : strangers_) tell(stranger.socket());
}

void Admission::throw_missing() const {
  std::string missing;
  for (int rank = 1; rank < size_; ++rank) {
    if (ranks_[Index(rank)].valid()) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  std::string notes;
  for (const std::string& note : notes_)
    notes += fmt::format("{}{}", notes.empty() ? ". Who came: " : "; ", note);
  throw TimeoutError(
      fmt::format("rank 0 waited {} ms at {} for ranks that did not come: {}{}. (If they are "
                  "running, have they "
                  "joined another process that is rank 0 there?)",
                  timeout_.count(), place_.name(), missing, notes));
}

}  // namespace

std::vector<FileDescriptor> admit_ranks(MeetingPoint& place, int size,
                                        std::chrono::milliseconds timeout,
                                        Clock::time_point deadline) {
  return Admission(place, size, timeout, deadline).run();
}

}  // namespace rondo::detail

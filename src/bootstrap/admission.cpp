#include "bootstrap/admission.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/log.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/sockets.hpp"

namespace rondo::detail {
namespace {

// Of processes that have connected and not yet proven to be a rank; the oldest must go when there are more.
constexpr std::size_t kMostVisitors = 128;
// Texts of those who were sent away, for the error of a rank that never comes.
constexpr std::size_t kMostNotes = 4;
// How often rank 0 looks whether it is still the one that others find.
constexpr std::chrono::milliseconds kBetweenLooks{200};

// A process that has connected to rank 0.
class Visitor {
 public:
  Visitor(FileDescriptor socket, std::string name, const std::string& secret)
      : socket_(std::move(socket)),
        name_(std::move(name)),
        interview_(secret, introduce(!secret.empty())) {}

  [[nodiscard]] const FileDescriptor& socket() const { return socket_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Hello* hello() const { return interview_.hello(); }
  FileDescriptor take_socket() { return std::move(socket_); }

  // Reads what has arrived, and replies. Returns why the visitor must go; empty if it may stay.
  std::string listen() {
    while (interview_.hello() == nullptr) {
      const std::span<std::byte> room = interview_.room();
      const ssize_t received = ::recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
      if (received < 0 && errno == EINTR) continue;
      if (received < 0 && errno == EAGAIN) return {};
      if (received <= 0) return "it left";
      const std::optional<Reply> reply = interview_.took(static_cast<std::size_t>(received));
      if (reply) say(*reply);
      if (!interview_.objection().empty()) return interview_.objection();
    }
    return {};
  }

  // Replies fit the buffer of a new socket. If the visitor has left, reading from it tells.
  void say(const Reply& reply) const {
    static_cast<void>(::send(socket_.get(), &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT));
  }

 private:
  FileDescriptor socket_;
  std::string name_;
  Interview interview_;
};

class Admission {
 public:
  Admission(MeetingPoint& place, int size, std::chrono::milliseconds timeout,
            Clock::time_point deadline)
      : place_(place), size_(size), timeout_(timeout), deadline_(deadline) {}

  std::vector<FileDescriptor> run();

 private:
  void admit_all();
  void let_in();
  // Whether anybody has something to say; false when the deadline has passed.
  bool wait_for_any();
  void hear_all();
  void seat(Visitor visitor);
  void send_away(const Visitor& visitor, const std::string& why);
  void empty_seats_of_those_who_left();
  [[nodiscard]] bool all_seated() const;
  void answer_all(const std::exception_ptr& refusal) noexcept;
  [[noreturn]] void throw_missing() const;

  MeetingPoint& place_;
  int size_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  std::vector<FileDescriptor> listeners_;
  std::vector<Visitor> visitors_;        // who have not proven anything yet
  std::vector<FileDescriptor> seats_;    // by rank
  std::vector<FileDescriptor> refused_;  // ranks that make all fail, and are told so
  std::vector<std::string> notes_;
  bool is_late_ = false;
};

std::vector<FileDescriptor> Admission::run() {
  listeners_ = place_.listen(deadline_);
  seats_.resize(static_cast<std::size_t>(size_));
  try {
    admit_all();
  } catch (...) {
    answer_all(std::current_exception());
    place_.close();
    throw;
  }
  answer_all(nullptr);
  place_.close();
  return std::move(seats_);
}

void Admission::admit_all() {
  while (!all_seated()) {
    if (!wait_for_any()) throw_missing();
    const std::string objection = place_.objection_to_myself();
    if (!objection.empty()) throw UsageError(objection);
    let_in();
    hear_all();
    empty_seats_of_those_who_left();
  }
}

bool Admission::all_seated() const {
  return std::all_of(seats_.begin() + 1, seats_.end(),
                     [](const FileDescriptor& seat) { return seat.valid(); });
}

bool Admission::wait_for_any() {
  std::vector<pollfd> requests;
  for (const FileDescriptor& listener : listeners_) requests.push_back({listener.get(), POLLIN, 0});
  for (const Visitor& visitor : visitors_) requests.push_back({visitor.socket().get(), POLLIN, 0});
  for (const FileDescriptor& seat : seats_) {
    if (seat.valid()) requests.push_back({seat.get(), POLLRDHUP, 0});
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
  const auto wait = std::clamp<std::chrono::milliseconds>(
      left + std::chrono::milliseconds(1), std::chrono::milliseconds(0), kBetweenLooks);
  const bool any = ::poll(requests.data(), requests.size(), static_cast<int>(wait.count())) > 0;
  if (left.count() >= 0) return true;
  return any && !std::exchange(is_late_, true);  // what has come until now is heard once more
}

void Admission::let_in() {
  for (const FileDescriptor& listener : listeners_) {
    for (;;) {
      FileDescriptor socket(
          ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid() && (errno == EMFILE || errno == ENFILE)) {
        throw TransportError(
            fmt::format("{}: rank 0 cannot take in more ranks: {}; allow more open files "
                        "(ulimit -n)",
                        place_.caller(), std::strerror(errno)));
      }
      if (!socket.valid()) break;
      const std::string objection = place_.objection_to_visitor(socket);
      std::string name = place_.visitor_name(socket);
      Visitor visitor(std::move(socket), std::move(name), place_.secret());
      if (!objection.empty()) {
        send_away(visitor, objection);
        continue;
      }
      if (visitors_.size() == kMostVisitors) {
        send_away(visitors_.front(), "it did not say who it is, and others came");
        visitors_.erase(visitors_.begin());
      }
      visitors_.push_back(std::move(visitor));
    }
  }
}

void Admission::hear_all() {
  for (std::size_t i = 0; i < visitors_.size();) {
    const std::string objection = visitors_[i].listen();
    if (objection.empty() && visitors_[i].hello() == nullptr) {
      ++i;
      continue;
    }
    Visitor visitor = std::move(visitors_[i]);
    visitors_.erase(visitors_.begin() + static_cast<std::ptrdiff_t>(i));
    if (objection.empty()) {
      seat(std::move(visitor));
    } else {
      send_away(visitor, objection);
    }
  }
}

void Admission::send_away(const Visitor& visitor, const std::string& why) {
  log(LogLevel::warning, "{}: rank 0 sends {} away that came to {}: {}", place_.caller(),
      visitor.name(), place_.name(), why);
  const bool known = std::any_of(notes_.begin(), notes_.end(),
                                 [&](const std::string& note) { return note.ends_with(why); });
  if (!known && notes_.size() < kMostNotes) {
    notes_.push_back(fmt::format("{}: {}", visitor.name(), why));
  }
}

void Admission::seat(Visitor visitor) {
  const Hello hello = *visitor.hello();
  const bool fits = hello.rank > 0 && hello.rank < size_ && hello.size == size_;
  FileDescriptor* seat = fits ? &seats_[static_cast<std::size_t>(hello.rank)] : nullptr;
  if (seat == nullptr || (seat->valid() && !has_hung_up(*seat))) {
    refused_.push_back(visitor.take_socket());
    throw UsageError(
        fmt::format("{}: somebody came to {} as rank {} of {}, but rank 0 was told of {} ranks, "
                    "each of which comes once",
                    place_.caller(), place_.name(), hello.rank, hello.size, size_));
  }
  *seat = visitor.take_socket();
}

void Admission::empty_seats_of_those_who_left() {
  for (std::size_t rank = 1; rank < seats_.size(); ++rank) {
    if (!seats_[rank].valid() || !has_hung_up(seats_[rank])) continue;
    seats_[rank] = FileDescriptor();
    if (notes_.size() < kMostNotes) notes_.push_back(fmt::format("rank {} came and left", rank));
  }
}

void Admission::answer_all(const std::exception_ptr& refusal) noexcept {
  Reply answer = answer_for(refusal);
  try {
    answer.introduction = introduce(!place_.secret().empty());
    // Also those whose connection was not accepted yet, and those who have not proven who they are.
    if (refusal != nullptr) let_in();
  } catch (const Error&) {
    // No file descriptors are left to accept them.
  }
  const auto tell = [&](const FileDescriptor& socket) {
    // The answer fits the buffer of a new socket. A rank that has left is noticed when blobs are exchanged.
    if (socket.valid())
      static_cast<void>(::send(socket.get(), &answer, sizeof(answer), MSG_NOSIGNAL));
  };
  for (const FileDescriptor& seat : seats_) tell(seat);
  for (const FileDescriptor& socket : refused_) tell(socket);
  if (refusal == nullptr) return;
  for (const Visitor& visitor : visitors_) tell(visitor.socket());
}

void Admission::throw_missing() const {
  std::string missing;
  for (int rank = 1; rank < size_; ++rank) {
    if (seats_[static_cast<std::size_t>(rank)].valid()) continue;
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

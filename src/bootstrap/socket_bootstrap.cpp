#include "bootstrap/socket_bootstrap.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/giving_up.hpp"
#include "base/index.hpp"
#include "base/random_number.hpp"
#include "bootstrap/addresses.hpp"
#include "bootstrap/admission.hpp"
#include "bootstrap/connect.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/local_socket.hpp"
#include "bootstrap/sockets.hpp"

namespace rondo::detail {
namespace {

// How long a try to connect may take where the next one may find another address.
constexpr std::chrono::milliseconds kOneTry{2000};
constexpr std::chrono::milliseconds kLongestTry{32000};
constexpr std::chrono::milliseconds kUntilFirstWord{10000};
constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{50};
constexpr std::chrono::milliseconds kAfterAnother{100};  // which may log each connection

// One try of this rank to join at rank 0.
class JoinAttempt {
 public:
  // `process` identifies this process to rank 0, which so recognises a rank that comes again.
  JoinAttempt(asio::io_context& network, const MeetingPoint& place, int rank, int size,
              std::uint64_t process)
      : network_(network), place_(place), rank_(rank), size_(size), process_(process) {}

  // `last_port`: where the try before this one ended; see MeetingPoint::find. Connects and proves
  // who this rank is. Returns the socket once rank 0 has proven who it is; else why not. Throws
  // what rank 0 answers if it has given up, and what the place throws.
  Attempt run(Clock::time_point deadline, std::uint16_t& last_port);
  // Whether trying again is useless: another process than these ranks' rank 0 has replied, and
  // would reply again. After a lost connection this is not known.
  [[nodiscard]] bool is_final() const { return is_another_ && !place_.may_be_stale; }
  [[nodiscard]] bool is_another() const { return is_another_; }
  [[nodiscard]] bool connected() const { return connected_; }

 private:
  Attempt another(std::string why) {
    is_another_ = true;
    return {FileDescriptor(), std::move(why)};
  }
  // Returns an empty text if the reply has come, else why it has not.
  std::string receive(const FileDescriptor& socket, Reply& reply, Clock::time_point first_word,
                      Clock::time_point deadline);

  asio::io_context& network_;
  const MeetingPoint& place_;
  int rank_;
  int size_;
  std::uint64_t process_;
  bool connected_ = false;
  bool is_another_ = false;
  Introduction mine_;
};

std::string JoinAttempt::receive(const FileDescriptor& socket, Reply& reply,
                                 Clock::time_point first_word, Clock::time_point deadline) {
  auto* bytes = reinterpret_cast<char*>(&reply);
  // Another program may say a few letters of its own, and then close the connection, or wait.
  constexpr std::size_t kMagicBytes = sizeof(reply.introduction.magic);
  std::size_t received = 0;
  Moved moved;
  const auto fits = [&] { return std::equal(bytes, bytes + received, mine_.magic.begin()); };
  while (received < kMagicBytes && fits() && moved.end == Moved::End::done) {
    moved = receive_all(socket, bytes + received, 1, first_word);
    if (moved.end == Moved::End::done) ++received;
  }
  is_another_ = moved.end == Moved::End::late && first_word < deadline;
  constexpr std::size_t kFirst = sizeof(reply.introduction);
  if (moved.end == Moved::End::done && fits()) {
    moved = receive_all(socket, bytes + kMagicBytes, kFirst - kMagicBytes, deadline);
  }
  if (moved.end == Moved::End::done) {
    // What follows may have another size where this differs.
    std::string objection = objection_to(reply.introduction, mine_);
    is_another_ = !objection.empty();
    if (!objection.empty()) return objection;
    moved = receive_all(socket, bytes + kFirst, sizeof(reply) - kFirst, deadline);
  }
  if (moved.end == Moved::End::done) return {};
  return moved.end == Moved::End::late ? "it does not reply" : moved.why;
}

Attempt JoinAttempt::run(Clock::time_point deadline, std::uint16_t& last_port) {
  const Target target = place_.find(deadline, last_port);
  Attempt attempt = connect_to(network_, target, deadline);
  connected_ = attempt.socket.valid();
  if (!connected_) {
    if (!target.addresses.empty()) attempt.why_not = place_.if_silent + attempt.why_not;
    return attempt;
  }
  if (!is_local(attempt.socket)) last_port = peer_address_of(attempt.socket).port();
  const std::string& secret = target.secret;
  const Run run = run_name(place_.run);
  mine_ = introduce(!secret.empty());
  const auto stopped = [](std::string why) { return Attempt{FileDescriptor(), std::move(why)}; };
  if (send_all(attempt.socket, &mine_, sizeof(mine_), deadline).end != Moved::End::done) {
    return stopped("it closed the connection");
  }
  Reply reply;
  // Rank 0 may have much to do; but something that never says a word may listen there, too.
  const Clock::time_point soon = std::min(deadline, deadline_after(kUntilFirstWord));
  std::string why_not = receive(attempt.socket, reply, soon, deadline);
  if (!why_not.empty()) return stopped(std::move(why_not));
  // What answers in a stale place is not to be trusted before it has proven who it is, or has named
  // this run.
  const auto is_refusal = [&] {
    if (reply.kind != Reply::Kind::answer) return false;
    if (!place_.may_be_stale || (!place_.run.empty() && reply.run == run)) throw_refusal(reply);
    return true;
  };
  if (is_refusal()) return another("it refuses this rank");
  const auto of_another_run = [&] {
    return another(fmt::format("it belongs to another run: {}, and this rank to {}",
                               text_of(reply.run), text_of(run)));
  };
  if (place_.is_of_one_run && reply.run != run) return of_another_run();
  Hello hello{rank_, size_, process_, run, {}};
  const Nonce firsts = reply.introduction.nonce;
  hello.proof = prove_for(Speaker::rank, secret, mine_.nonce, firsts, rank_, size_);
  if (send_all(attempt.socket, &hello, sizeof(hello), deadline).end != Moved::End::done) {
    return stopped("it closed the connection");
  }
  why_not = receive(attempt.socket, reply, deadline, deadline);
  if (!why_not.empty()) return stopped(std::move(why_not));
  if (reply.kind == Reply::Kind::another_run) return of_another_run();
  if (is_refusal()) return another("it refuses this rank");
  const Proof expected = prove_for(Speaker::first, secret, mine_.nonce, firsts, rank_, size_);
  if (reply.kind != Reply::Kind::welcome || !same(reply.proof, expected)) {
    return another("it does not know the secret of these ranks");
  }
  return attempt;
}

}  // namespace

SocketBootstrap::SocketBootstrap(const MeetingPoint& place, int rank, int size,
                                 std::chrono::milliseconds timeout)
    : rank_(rank), size_(size), timeout_(timeout), deadline_(deadline_after(timeout)) {
  set_patience(timeout);
  if (size < 1 || rank < 0 || rank >= size) {
    throw UsageError(
        fmt::format("{}: rank {} of {}: ranks are 0 to size - 1", place.caller, rank, size));
  }
  if (rank == 0) {
    fail_if_another_is_first(place);
    sockets_ = admit_ranks(place, size, timeout, deadline_);
  } else {
    connect_to_first(place);
    wait_for_answer();
  }
}

void SocketBootstrap::connect_to_first(const MeetingPoint& place) {
  const std::uint64_t process = random_number();
  std::string why_not;
  std::chrono::milliseconds one_try = kOneTry;
  std::uint16_t last_port = 0;
  asio::io_context network(1);
  for (std::chrono::milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    JoinAttempt entry(network, place, rank_, size_, process);
    const Clock::time_point until =
        place.may_be_stale ? std::min(deadline_, deadline_after(one_try)) : deadline_;
    Attempt attempt = entry.run(until, last_port);
    if (attempt.socket.valid()) {
      sockets_.push_back(std::move(attempt.socket));
      return;  // and closes what Asio has opened, before the wait for all ranks
    }
    why_not = attempt.why_not;
    if (entry.is_final()) {
      throw TransportError(fmt::format("rank {} cannot join the process that it reached at {}: {}",
                                       rank_, place.name, why_not));
    }
    // A rank 0 with much to do may need longer.
    if (entry.connected() && !entry.is_another()) one_try = std::min(2 * one_try, kLongestTry);
    const std::chrono::milliseconds rest = entry.is_another() ? kAfterAnother : pause;
    if (is_over(deadline_ - rest)) {  // no try could end any more
      throw TimeoutError(
          fmt::format("rank {} waited {} ms for rank 0 at {} ({}); was rank 0 started, or has it "
                      "joined others already, among them another rank {}?",
                      rank_, timeout_.count(), place.name, why_not, rank_));
    }
    std::this_thread::sleep_for(rest);
  }
}

// Finds two processes that are both rank 0: the one that came first refuses the other, and sends
// the reason to all ranks.
void SocketBootstrap::fail_if_another_is_first(const MeetingPoint& place) {
  std::uint16_t last_port = 0;
  asio::io_context network(1);
  for (int looks = place.looks_for_another; looks > 0; --looks) {
    JoinAttempt entry(network, place, 0, size_, random_number());
    Attempt attempt;
    try {
      attempt = entry.run(std::min(deadline_, deadline_after(kOneTry)), last_port);
    } catch (const TransportError&) {
      continue;  // it is no rank 0 of this group
    }
    if (attempt.socket.valid()) {
      sockets_.push_back(std::move(attempt.socket));
      wait_for_answer();
      throw UsageError(
          fmt::format("{}: another process is rank 0 at {}", place.caller, place.name));
    }
    if (!entry.connected()) return;
  }
}

void SocketBootstrap::wait_for_answer() {
  Reply answer;
  // Wait a second longer than rank 0, whose deadline is running already: its answer names the
  // missing ranks.
  deadline_ = deadline_after(timeout_) + std::chrono::seconds(1);
  receive(sockets_[0], &answer, sizeof(answer), 0);
  throw_refusal(answer);
}

void SocketBootstrap::send(const FileDescriptor& to, const void* data, std::size_t bytes,
                           int peer) const {
  require(send_all(to, data, bytes, deadline_), "to send to", peer);
}

void SocketBootstrap::receive(const FileDescriptor& from, void* data, std::size_t bytes,
                              int peer) const {
  require(receive_all(from, data, bytes, deadline_), "for", peer);
}

void SocketBootstrap::require(const Moved& moved, const char* waited, int peer) const {
  if (moved.end == Moved::End::late) {
    throw TimeoutError(fmt::format("rank {} waited {} ms {} rank {} while joining", rank_,
                                   timeout_.count(), waited, peer));
  }
  if (moved.end == Moved::End::lost) {
    throw TransportError(
        fmt::format("rank {} has lost rank {} while joining: {}", rank_, peer, moved.why));
  }
}

std::string SocketBootstrap::interfaces() const {
  std::set<std::string> met;
  for (const FileDescriptor& socket : sockets_) {
    if (!socket.valid() || is_local(socket)) continue;
    const std::string name = interface_with(address_of(socket));
    if (!name.empty()) met.insert(name);  // empty: loopback, to a rank of this host
  }
  std::string names;
  for (const std::string& name : met) names += (names.empty() ? "" : ",") + name;
  return names;
}

void SocketBootstrap::all_gather(const void* mine, void* all, std::size_t bytes) {
  deadline_ = deadline_after(timeout_);
  const std::size_t total = bytes * static_cast<std::size_t>(size_);
  if (rank_ == 0) {
    std::memcpy(all, mine, bytes);
    try {
      gather_and_spread(static_cast<char*>(all), bytes);
    } catch (...) {
      tell_all(std::current_exception());
      throw;
    }
    return;
  }
  // Rank 0 may come to this exchange later, and then waits as long for another rank, before it
  // says which one it is.
  deadline_ = deadline_after(timeout_ < std::chrono::hours(24) ? 2 * timeout_ : timeout_);
  // If rank 0 has given up, its reason may have arrived although nothing can be sent any more.
  const Moved sent = send_all(sockets_[0], mine, bytes, deadline_);
  Verdict verdict = Verdict::welcome;
  const Moved received = receive_all(sockets_[0], &verdict, sizeof(verdict), deadline_);
  if (received.end != Moved::End::done) require(sent, "to send to", 0);
  require(received, "for", 0);
  if (verdict != Verdict::welcome) {
    Reply answer;
    receive(sockets_[0], &answer, sizeof(answer), 0);
    throw_refusal(answer);
  }
  receive(sockets_[0], all, total, 0);
}

void SocketBootstrap::gather_and_spread(char* rows, std::size_t bytes) {
  for (int peer = 1; peer < size_; ++peer) {
    const Index index(peer);
    receive(sockets_[index], rows + index * bytes, bytes, peer);
  }
  const Verdict verdict = Verdict::welcome;
  for (int peer = 1; peer < size_; ++peer) {
    const FileDescriptor& socket = sockets_[Index(peer)];
    send(socket, &verdict, sizeof(verdict), peer);
    send(socket, rows, bytes * static_cast<std::size_t>(size_), peer);
  }
}

// A rank that has got the rows of this exchange gets the reason in the next one, if there is
// one. One whose rows are under way may take the reason for rows: but its connection is closed
// then, so it has lost rank 0.
void SocketBootstrap::tell_all(const std::exception_ptr& reason) const noexcept {
  const Reply answer = answer_for(reason);
  std::array<std::byte, sizeof(Verdict) + sizeof(Reply)> message{};
  std::memcpy(message.data(), &answer.verdict, sizeof(answer.verdict));
  std::memcpy(message.data() + sizeof(Verdict), &answer, sizeof(answer));
  for (const FileDescriptor& socket : sockets_) {
    if (!socket.valid()) continue;
    static_cast<void>(
        ::send(socket.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
}

}  // namespace rondo::detail

// An all_reduce over sockets of one host in which whoever waits is asleep: what a program does that
// has no collective library.

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <rondo/chunk.hpp>
#include <span>
#include <system_error>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/with_type.hpp"
#include "bench/perf/peers.hpp"

namespace rondo::perf {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// A name in Linux's abstract namespace.
struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;

  explicit Address(const std::string& text) {
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path + 1, text.data(), text.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

// What goes to and comes from one rank; it moves on as bytes do.
struct Transfer {
  int rank = 0;
  std::span<const std::byte> send;
  std::span<std::byte> receive;
};

class Sockets {
 public:
  // Collective.
  explicit Sockets(Communicator& comm)
      : rank_(comm.rank()), size_(comm.size()), by_rank_(static_cast<std::size_t>(comm.size())) {
    std::array<std::int64_t, 1> first = {::getpid()};
    comm.broadcast(first, 0);
    const auto address = [&](int rank) {
      return Address(fmt::format("rondo-perf-{}-{}", first[0], rank));
    };
    const detail::FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Address own = address(rank_);
    if (::bind(listener.get(), own.get(), own.bytes) != 0) fail("bind");
    if (::listen(listener.get(), size_) != 0) fail("listen");
    comm.barrier();
    for (int rank = 0; rank < rank_; ++rank) {
      detail::FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const Address theirs = address(rank);
      if (::connect(socket.get(), theirs.get(), theirs.bytes) != 0) fail("connect");
      if (::send(socket.get(), &rank_, sizeof(rank_), 0) != sizeof(rank_)) fail("send");
      at(rank) = std::move(socket);
    }
    for (int rank = rank_ + 1; rank < size_; ++rank) {
      detail::FileDescriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      int from = 0;
      if (::recv(socket.get(), &from, sizeof(from), MSG_WAITALL) != sizeof(from)) fail("recv");
      at(from) = std::move(socket);
    }
    comm.barrier();
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  // Sends and receives all of this. Whoever has to wait sleeps.
  void run(std::vector<Transfer>& transfers) {
    for (Transfer& transfer : transfers) send_some(transfer);
    while (std::any_of(transfers.begin(), transfers.end(),
                       [](const Transfer& transfer) { return !transfer.send.empty(); })) {
      run_some(transfers);
    }
    for (Transfer& transfer : transfers) receive_some(transfer, MSG_WAITALL);
  }

 private:
  detail::FileDescriptor& at(int rank) { return by_rank_[static_cast<std::size_t>(rank)]; }

  // Sleeps until some of it can be sent or received.
  void run_some(std::vector<Transfer>& transfers) {
    events_.clear();
    for (const Transfer& transfer : transfers) {
      const auto wanted = static_cast<short>((transfer.send.empty() ? 0 : POLLOUT) |
                                             (transfer.receive.empty() ? 0 : POLLIN));
      events_.push_back({wanted == 0 ? -1 : at(transfer.rank).get(), wanted, 0});
    }
    if (::poll(events_.data(), events_.size(), -1) < 0 && errno != EINTR) fail("poll");
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      if ((events_[i].revents & POLLOUT) != 0) send_some(transfers[i]);
      if ((events_[i].revents & (POLLIN | POLLHUP)) != 0) receive_some(transfers[i], MSG_DONTWAIT);
    }
  }

  void send_some(Transfer& transfer) {
    if (transfer.send.empty()) return;
    const auto sent = ::send(at(transfer.rank).get(), transfer.send.data(), transfer.send.size(),
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) fail("send");
    if (sent > 0) transfer.send = transfer.send.subspan(static_cast<std::size_t>(sent));
  }
  void receive_some(Transfer& transfer, int flags) {
    if (transfer.receive.empty()) return;
    const auto received =
        ::recv(at(transfer.rank).get(), transfer.receive.data(), transfer.receive.size(), flags);
    if (received == 0) errno = ECONNRESET;
    if (received == 0 || (received < 0 && errno != EAGAIN)) fail("recv");
    if (received > 0)
      transfer.receive = transfer.receive.subspan(static_cast<std::size_t>(received));
  }

  int rank_;
  int size_;
  std::vector<detail::FileDescriptor> by_rank_;
  std::vector<pollfd> events_;
};

// Each rank sends its chunk of every other rank to that one, adds up its own, and sends the sum to
// all; of short vectors, each rank sends all to all.
template <class T>
class Sum {
 public:
  Sum(std::shared_ptr<Sockets> sockets, const Call& call)
      : sockets_(std::move(sockets)), call_(call) {
    constexpr std::uint64_t kShortBytes = std::uint64_t{64} << 10U;
    short_ = call.count * sizeof(T) <= kShortBytes;
    const Range mine = part(sockets_->rank());
    theirs_.resize(static_cast<std::size_t>(sockets_->size()) * mine.count);
  }

  void run() {
    const std::span<const T> in(static_cast<const T*>(call_.in), call_.count);
    const std::span<T> out(static_cast<T*>(call_.out), call_.count);
    const Range mine = part(sockets_->rank());
    transfers_.clear();
    for_each_other([&](int rank) {
      transfers_.push_back({rank, std::as_bytes(slice(in, part(rank))),
                            std::as_writable_bytes(from(rank, mine.count))});
    });
    sockets_->run(transfers_);
    const std::span<T> sum = slice(out, mine);
    if (call_.in != call_.out) std::copy_n(in.data() + mine.offset, mine.count, sum.begin());
    for_each_other([&](int rank) {
      const std::span<T> values = from(rank, mine.count);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<T>(sum[i] + values[i]);
    });
    if (short_) return;
    transfers_.clear();
    for_each_other([&](int rank) {
      transfers_.push_back(
          {rank, std::as_bytes(sum), std::as_writable_bytes(slice(out, part(rank)))});
    });
    sockets_->run(transfers_);
  }

 private:
  [[nodiscard]] Range part(int rank) const {
    return short_ ? Range{0, call_.count}
                  : chunk_range(call_.count, static_cast<std::uint64_t>(sockets_->size()),
                                static_cast<std::uint64_t>(rank));
  }
  template <class U>
  static std::span<U> slice(std::span<U> all, const Range& range) {
    return all.subspan(range.offset, range.count);
  }
  std::span<T> from(int rank, std::uint64_t count) {
    return std::span(theirs_).subspan(static_cast<std::size_t>(rank) * count, count);
  }
  template <class Visit>
  void for_each_other(Visit visit) const {
    for (int rank = 0; rank < sockets_->size(); ++rank) {
      if (rank != sockets_->rank()) visit(rank);
    }
  }

  std::shared_ptr<Sockets> sockets_;
  Call call_;
  bool short_ = false;
  std::vector<T> theirs_;  // of each rank what it sent of this rank's part
  std::vector<Transfer> transfers_;
};

}  // namespace

Peer sockets_peer(Communicator& comm) {
  return [sockets = std::make_shared<Sockets>(comm)](
             const Call& call) -> std::optional<std::function<void()>> {
    if (call.collective != Collective::all_reduce || !detail::is_common(call.type) ||
        call.op != ReduceOp::sum) {
      return std::nullopt;
    }
    return detail::with_common_type(
        call.type, [&](auto tag) -> std::optional<std::function<void()>> {
          using T = typename decltype(tag)::Type;
          if constexpr (std::is_arithmetic_v<T>) {
            return [sum = std::make_shared<Sum<T>>(sockets, call)] { sum->run(); };
          } else {
            return std::nullopt;
          }
        });
  };
}

}  // namespace rondo::perf

// What UCX has sent arrives though the sender looks at the network no more.

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "bootstrap/addresses.hpp"
#include "net/ucx_messenger.hpp"
#include "net/ucx_worker.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/ucx.hpp"

namespace rondo::detail {
namespace {

using test::ForkedRank;
using test::run_forked;

// What the two ranks tell each other beside UCX: blocks until the other has said something.
class Line {
 public:
  explicit Line(int descriptor) : descriptor_(descriptor) {
    const timeval patience{60, 0};
    ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  void say(const std::string& text) const {
    const std::uint64_t bytes = text.size();
    if (::write(descriptor_, &bytes, sizeof(bytes)) != sizeof(bytes)) ::_exit(210);
    if (::write(descriptor_, text.data(), bytes) != static_cast<ssize_t>(bytes)) ::_exit(210);
  }
  [[nodiscard]] std::string receive() const {
    std::uint64_t bytes = 0;
    read_all(&bytes, sizeof(bytes));
    std::string text(bytes, '\0');
    read_all(text.data(), bytes);
    return text;
  }

 private:
  void read_all(void* data, std::size_t bytes) const {
    auto* at = static_cast<char*>(data);
    for (ssize_t got = 0; bytes > 0; at += got, bytes -= static_cast<std::size_t>(got)) {
      got = ::read(descriptor_, at, bytes);
      if (got <= 0) ::_exit(211);
    }
  }
  int descriptor_;
};

constexpr int kTag = 5;
constexpr std::size_t kMost = 200000;

std::vector<std::uint8_t> message(std::size_t number, std::size_t bytes) {
  std::vector<std::uint8_t> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    result[i] = static_cast<std::uint8_t>(number * 31 + i * 7 + i / 251);
  }
  return result;
}

// Messages of these sizes in turn.
using Sizes = std::array<std::size_t, 2>;

// Sends until nothing moves any more; returns how many sends have ended. The last one is left under
// way.
std::size_t fill(Messenger& messenger, const Sizes& sizes, Operation& last) {
  constexpr int kLooks = 5000;
  static std::vector<std::uint8_t> data;  // of the last one
  for (std::size_t sent = 0;; ++sent) {
    data = message(sent, sizes[sent % 2]);
    last = messenger.send(1, kTag, data.data(), data.size(), Messenger::Delivery::sent);
    int looks = 0;
    while (!messenger.has_ended(last, "sending", 1)) {
      if (++looks == kLooks) return sent;
    }
  }
}

bool receive(Messenger& messenger, std::size_t number, std::size_t bytes) {
  static std::vector<std::uint8_t> data;
  data.resize(kMost);
  Operation operation = messenger.receive(0, kTag, data.data(), data.size());
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!messenger.has_ended(operation, "receiving", 0)) {
    if (std::chrono::steady_clock::now() > give_up) return false;
  }
  data.resize(bytes);
  return data == message(number, bytes);
}

int send_or_receive(const ForkedRank& me, const Line& line, const std::vector<Sizes>& patterns) {
  const auto network = open_ucx("lo");
  std::vector<std::string> addresses(2);
  const auto other = static_cast<std::size_t>(1 - me.rank);
  addresses[1 - other] = network->address();
  line.say(network->address());
  addresses[other] = line.receive();
  const auto messenger = network->messenger(me.rank, addresses, 12345);
  messenger->connect({1 - me.rank});
  for (const Sizes& sizes : patterns) {
    if (me.rank == 0) {
      Operation last;
      const std::size_t sent = fill(*messenger, sizes, last);
      if (sent == 0 && sizes[0] < kMost) return 1;  // UCX asks the receiver before it sends kMost
      line.say(std::to_string(sent));
      if (line.receive() != "received") return 2;
      while (!messenger->has_ended(last, "sending", 1)) {
      }
      if (line.receive() != "all") return 3;
    } else {
      const std::size_t sent = std::stoul(line.receive());
      bool received = true;
      for (std::size_t number = 0; received && number < sent; ++number) {
        received = receive(*messenger, number, sizes[number % 2]);
      }
      line.say(received ? "received" : "lost");
      if (!received) return 4;
      received = receive(*messenger, sent, sizes[sent % 2]);
      line.say(received ? "all" : "lost");
      if (!received) return 5;
    }
  }
  return 0;
}

// Runs `body` as two ranks with a messenger between them; it makes others.
void expect_well(const std::function<int(const ForkedRank&, const Line&, const UcxNetwork&,
                                         const std::vector<std::string>&)>& body,
                 const std::vector<int>& wanted = {0, 0}) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);
    ::close(ends[static_cast<std::size_t>(1 - me.rank)]);
    const Line line(ends[static_cast<std::size_t>(me.rank)]);
    const auto network = open_ucx("lo");
    std::vector<std::string> addresses(2);
    const auto other = static_cast<std::size_t>(1 - me.rank);
    addresses[1 - other] = network->address();
    line.say(network->address());
    addresses[other] = line.receive();
    return body(me, line, *network, addresses);
  });
  for (const int end : ends) ::close(end);
  EXPECT_EQ(codes, wanted);
}

// Whether UCX still keeps any message that nobody has received, when there was time for all that is
// under way.
bool keeps_a_message() {
  const auto worker = UcxWorker::of_process("lo");
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < give_up) {
    const auto lock = worker->lock();
    for (int look = 0; look < 1000; ++look) worker->progress();
    worker->leftovers().sweep(worker->handle());
    ucp_tag_recv_info_t facts{};
    if (ucx().tag_probe_nb(worker->handle(), 0, 0, 0, &facts) == nullptr) return false;
  }
  return true;
}

// Each messenger sends one message that is received and one that is not, small or long; rank 0
// destroys its own first, or rank 1.
TEST(UcxMessenger, ADestroyedOneLeavesNothing) {
  if (const char* reason = test::reason_against_ucx()) GTEST_SKIP() << reason;
  expect_well([](const ForkedRank& me, const Line& line, const UcxNetwork& network,
                 const std::vector<std::string>& addresses) {
    for (std::uint64_t session = 1; session <= 200; ++session) {
      auto messenger = network.messenger(me.rank, addresses, session);
      messenger->connect({1 - me.rank});
      std::vector<std::uint8_t> data = message(session, session % 3 == 0 ? 80000 : 40);
      const auto sent =
          messenger->send(1 - me.rank, 6, data.data(), data.size(), Messenger::Delivery::sent);
      static_cast<void>(sent);
      if (static_cast<std::uint64_t>(me.rank) == session % 2) static_cast<void>(line.receive());
      messenger.reset();
      if (static_cast<std::uint64_t>(me.rank) != session % 2) line.say("destroyed");
    }
    line.say("all destroyed");
    static_cast<void>(line.receive());
    const bool keeps = keeps_a_message();
    line.say("looked");
    static_cast<void>(line.receive());
    return keeps ? 1 : 0;
  });
}

// One rank ends it, and tells the other, which has destroyed its own.
TEST(UcxMessenger, ACommunicatorThatFailsLeavesNothing) {
  if (const char* reason = test::reason_against_ucx()) GTEST_SKIP() << reason;
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);
    CommunicatorOptions options{.carrier = CarrierChoice::ucx};
    options.network.interface = "lo";
    Communicator comm = from_store("unix://" + me.socket, me.rank, me.size, options);
    for (int time = 0; time < 50; ++time) {
      Communicator failing = comm.duplicate();
      if (me.rank == time % 2) failing.abort("on purpose");
    }
    comm.barrier();
    const bool keeps = keeps_a_message();
    comm.barrier();
    return keeps ? 1 : 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// Rank 1 is killed while rank 0 has operations under way. The one that fails is closed, so that
// nobody looks at it again.
TEST(UcxMessenger, AnOperationThatHasFailedIsClosed) {
  if (const char* reason = test::reason_against_ucx()) GTEST_SKIP() << reason;
  expect_well(
      [](const ForkedRank& me, const Line& line, const UcxNetwork& network,
         const std::vector<std::string>& addresses) {
        auto messenger = network.messenger(me.rank, addresses, 77);
        messenger->connect({1 - me.rank});
        if (me.rank == 1) {
          static_cast<void>(line.receive());
          ::raise(SIGKILL);
        }
        std::vector<std::uint8_t> data(kMost);
        std::vector<Operation> operations;
        std::vector<Pending> pending;
        for (int i = 0; i < 4; ++i) {
          operations.push_back(
              messenger->send(1, 6, data.data(), data.size(), Messenger::Delivery::taken));
        }
        for (Operation& one : operations) pending.push_back({&one, "sending", 1});
        // To itself: ends well, whatever becomes of the others, and is not forgotten when one of
        // these fails.
        std::vector<std::uint8_t> own = message(3, 40);
        std::vector<std::uint8_t> got(own.size());
        Operation receive = messenger->receive(0, 7, got.data(), got.size());
        Operation send = messenger->send(0, 7, own.data(), own.size(), Messenger::Delivery::taken);
        pending.push_back({&receive, "receiving from itself", 0});
        pending.push_back({&send, "sending to itself", 0});
        line.say("all are under way");
        std::vector<std::size_t> ended;
        int failed = 0;
        int own_ended = 0;
        for (int open = 6; open > 0;) {
          try {
            messenger->look(pending, ended);
            for (const std::size_t position : ended)
              own_ended += pending[position].peer == 0 ? 1 : 0;
          } catch (const ConnectionLost& lost) {
            if (lost.peer() != 1) return 1;
            ++failed;
          }
          std::erase_if(pending, [](const Pending& one) { return !one.operation->under_way; });
          open = static_cast<int>(pending.size());
        }
        for (const Operation& one : operations) {
          if (one.handle != nullptr) return 2;
        }
        if (own_ended != 2 || got != own) return 4;
        return failed > 0 ? 0 : 3;
      },
      {0, 200});
}

// The only port that the user allows is taken: by a rank of a run that has crashed just now,
// perhaps.
TEST(UcxMessenger, APortThatIsTakenIsNamed) {
  if (const char* reason = test::reason_against_ucx()) GTEST_SKIP() << reason;
  const std::vector<int> codes = run_forked(1, [](const ForkedRank&) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);
    const FileDescriptor taken = listen_at(
        HostLookup("127.0.0.1").ask(0, deadline_after(std::chrono::minutes(1))).addresses[0]);
    const std::string port = std::to_string(address_of(taken).port());
    ::setenv("UCX_TCP_PORT_RANGE", (port + "-" + port).c_str(), 1);
    try {
      static_cast<void>(open_ucx("lo"));
    } catch (const TransportError& error) {
      const std::string text = error.what();
      const bool is_named = text.find("every port of UCX_TCP_PORT_RANGE") != std::string::npos;
      if (!is_named) std::fprintf(stderr, "%s\n", text.c_str());
      return is_named ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, std::vector<int>{0});
}

TEST(UcxMessenger, SendsThatHaveEndedArriveWithoutTheirSender) {
  if (const char* reason = test::reason_against_ucx()) GTEST_SKIP() << reason;
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);  // which address sanitizers do not endure
    ::close(ends[static_cast<std::size_t>(1 - me.rank)]);
    return send_or_receive(me, Line(ends[static_cast<std::size_t>(me.rank)]),
                           {{100, 24},
                            {1000, 1000},
                            {8192, 8193},
                            {16384, 24},
                            {40000, 40000},
                            {65536, 1000},
                            {65536, 65536},
                            {70000, 9000},
                            {kMost, kMost}});
  });
  for (const int end : ends) ::close(end);
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace rondo::detail

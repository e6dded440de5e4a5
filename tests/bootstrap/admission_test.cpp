// How rank 0 lets in others: very many of them, among strangers, with few descriptors. Ranks are
// threads here, or processes where a limit is to hold for rank 0 alone.

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "bootstrap/addresses.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/meeting_point.hpp"
#include "bootstrap/socket_bootstrap.hpp"
#include "bootstrap/sockets.hpp"
#include "tests/support/forked.hpp"

namespace rondo::detail {
namespace {

constexpr std::chrono::minutes kPatient{5};

Address loopback(std::uint16_t port) {
  return HostLookup("127.0.0.1").ask(port, deadline_after(kPatient)).addresses.at(0);
}

// Ports of the loopback interface that no other program gets, since this one holds them; ranks may
// listen at them.
class Ports {
 public:
  explicit Ports(int count) {
    const int on = 1;
    for (int i = 0; i < count; ++i) {
      FileDescriptor held(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ::setsockopt(held.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      const Address any = loopback(0);
      EXPECT_EQ(::bind(held.get(), any.data(), static_cast<socklen_t>(any.size())), 0);
      numbers_.push_back(address_of(held).port());
      held_.push_back(std::move(held));
    }
  }
  [[nodiscard]] const std::vector<std::uint16_t>& all() const { return numbers_; }
  [[nodiscard]] std::uint16_t operator[](std::size_t i) const { return numbers_[i]; }

 private:
  std::vector<FileDescriptor> held_;
  std::vector<std::uint16_t> numbers_;
};

SocketBootstrap join(const std::vector<std::uint16_t>& ports, const std::string& run, int rank,
                     int size, std::chrono::milliseconds timeout = kPatient) {
  NetworkOptions network;
  network.secret = "";
  return {meet_at_address({"127.0.0.1", ports[0]}, ports, run, network), rank, size, timeout};
}

// Whether this process may open as many files.
bool may_open(rlim_t files) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < files) return false;
  limit.rlim_cur = std::max(limit.rlim_cur, files);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// All ranks, each a thread, join and tell each other their numbers; rank 0 comes later than the
// others. Returns what went wrong.
std::vector<std::string> meet_as_threads(
    int size, const std::vector<std::uint16_t>& ports, const std::string& run,
    std::chrono::milliseconds later = std::chrono::milliseconds(0)) {
  std::mutex mutex;
  std::vector<std::string> failures;
  std::vector<std::thread> threads;
  for (int rank = size - 1; rank >= 0; --rank) {
    threads.emplace_back([&, rank] {
      std::string failure;
      try {
        if (rank == 0) std::this_thread::sleep_for(later);
        SocketBootstrap bootstrap = join(ports, run, rank, size);
        const std::vector<int> all = bootstrap.exchange(3 * rank + 1);
        for (int other = 0; other < size; ++other) {
          if (all[static_cast<std::size_t>(other)] != 3 * other + 1) failure = "a wrong number";
        }
      } catch (const std::exception& error) {
        failure = error.what();
      }
      if (failure.empty()) return;
      const std::lock_guard lock(mutex);
      failures.push_back(std::to_string(rank) + ": " + failure);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

TEST(Admission, VeryManyRanksJoinAtOnce) {
  for (const int size : {600, 2000}) {
    if (!may_open(5 * static_cast<rlim_t>(size) + 100)) {
      std::printf("not tried: %d ranks need more open files than this process may have\n", size);
      continue;
    }
    const Ports ports(1);
    EXPECT_EQ(meet_as_threads(size, ports.all(), ""), std::vector<std::string>()) << size;
  }
}

// Far more ranks than connections may wait at rank 0's port, long before rank 0 listens there.
TEST(Admission, ARank0ThatComesLateFindsAllOthers) {
  constexpr int kSize = 500;
  if (!may_open(5 * kSize + 100)) GTEST_SKIP() << "this process may not have 2600 open files";
  const Ports ports(1);
  EXPECT_EQ(meet_as_threads(kSize, ports.all(), "", std::chrono::seconds(3)),
            std::vector<std::string>());
}

// Strangers that connect and say nothing, or part of an introduction, without an end.
class Flood {
 public:
  explicit Flood(std::uint16_t port) {
    for (int i = 0; i < 4; ++i) threads_.emplace_back([this, port, i] { run(port, i); });
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;
  ~Flood() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void run(std::uint16_t port, int kind) {
    std::vector<FileDescriptor> open;
    const Address address = loopback(port);
    const Introduction introduction = introduce(false);
    while (!stop_) {
      FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(socket.get(), address.data(), static_cast<socklen_t>(address.size())) != 0)
        continue;
      const std::size_t bytes = kind == 0 ? 0 : kind == 1 ? 9 : sizeof(introduction);
      if (kind < 3) ::send(socket.get(), &introduction, bytes, MSG_NOSIGNAL);
      if (open.size() == 300) open.clear();
      if (kind != 3) open.push_back(std::move(socket));
    }
  }
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

TEST(Admission, AFloodOfStrangersKeepsNoRankOut) {
  if (!may_open(4000)) GTEST_SKIP() << "this process may not have 4000 open files";
  for (int time = 0; time < 3; ++time) {
    const Ports ports(1);
    const Flood flood(ports[0]);
    EXPECT_EQ(meet_as_threads(20, ports.all(), ""), std::vector<std::string>());
  }
}

TEST(Admission, StrangersMayHaveAllDescriptorsOfRank0) {
  const Ports ports(1);
  const std::vector<int> codes = test::run_forked(5, [&](const test::ForkedRank& me) {
    const std::string come = me.socket + ".come";
    if (me.rank == 4) {
      std::vector<FileDescriptor> strangers;
      const Address address = loopback(ports[0]);
      while (strangers.size() < 100) {
        FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (::connect(socket.get(), address.data(), static_cast<socklen_t>(address.size())) == 0) {
          strangers.push_back(std::move(socket));
        }
      }
      const FileDescriptor file(::open(come.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
      char byte =
          0;  // until rank 0 has closed the last one's connection, since all ranks have come
      while (::recv(strangers.back().get(), &byte, 1, 0) > 0) {
      }
      return ::unlink(come.c_str()) == 0 ? 0 : 1;
    }
    if (me.rank == 0) {
      const rlimit few{64, 64};
      ::setrlimit(RLIMIT_NOFILE, &few);
    }
    while (me.rank > 0 && ::access(come.c_str(), F_OK) != 0) std::this_thread::yield();
    return join(ports.all(), "", me.rank, 4).exchange(me.rank)[3] == 3 ? 0 : 1;
  });
  EXPECT_EQ(codes, std::vector<int>(5, 0));
}

TEST(Admission, FewerDescriptorsThanRanksIsAnErrorThatNamesTheLimit) {
#ifdef RONDO_TEST_UNDEFINED_SANITIZER
  GTEST_SKIP() << "this sanitizer needs a descriptor itself to look at an object's type";
#endif
  const Ports ports(1);
  const std::vector<int> codes = test::run_forked(2, [&](const test::ForkedRank& me) {
    if (me.rank == 0) {
      const rlimit few{16, 16};
      ::setrlimit(RLIMIT_NOFILE, &few);
      try {
        join(ports.all(), "", 0, 40);
      } catch (const TransportError& error) {
        return std::string(error.what()).find("ulimit -n") != std::string::npos ? 0 : 1;
      }
      return 2;
    }
    std::atomic<int> told = 0;
    std::vector<std::thread> threads;
    for (int rank = 1; rank < 40; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          join(ports.all(), "", rank, 40, std::chrono::seconds(3));
        } catch (const Error&) {
          ++told;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return told == 39 ? 0 : 3;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// Two runs whose ports are the same, started crosswise: a rank of one meets the rank 0 of the other
// first.
TEST(Admission, RunsThatHaveComputedTheSamePortsDoNotMix) {
  for (int time = 0; time < 5; ++time) {
    const Ports ports(3);
    std::vector<std::string> failures;
    std::thread other([&] { failures = meet_as_threads(3, ports.all(), "Slurm step 15603.0"); });
    EXPECT_EQ(meet_as_threads(3, ports.all(), "Slurm step 4711.0"), std::vector<std::string>());
    other.join();
    EXPECT_EQ(failures, std::vector<std::string>());
  }
}

TEST(Admission, APortOfAnotherProgramIsPassedOver) {
  const Ports ports(3);
  const FileDescriptor program = listen_at(loopback(ports[0]));
  EXPECT_EQ(meet_as_threads(3, ports.all(), "a run"), std::vector<std::string>());
}

TEST(Admission, ARankWhoseConnectionIsLostComesAgain) {
  const Ports ports(1);
  const std::vector<int> codes = test::run_forked(2, [&](const test::ForkedRank& me) {
    if (me.rank == 1) return join(ports.all(), "", 1, 2).exchange(7)[1] == 7 ? 0 : 1;
    // A rank 0 that takes in a connection and loses it, and then does its work.
    {
      const FileDescriptor listener = listen_at(loopback(ports[0]));
      ready_before(listener, 1, deadline_after(kPatient));
      const FileDescriptor lost(::accept(listener.get(), nullptr, nullptr));
      Introduction introduction;
      receive_all(lost, &introduction, sizeof(introduction), deadline_after(kPatient));
      Reply reply;
      reply.introduction = introduce(false);
      send_all(lost, &reply, sizeof(reply), deadline_after(kPatient));
    }
    return join(ports.all(), "", 0, 2).exchange(7)[1] == 7 ? 0 : 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// Ends at once, although the deadline is far: whatever listens there may listen for ever.
TEST(Admission, AProgramThatNeverSpeaksIsNamed) {
  const Ports ports(1);
  const FileDescriptor program = listen_at(loopback(ports[0]));
  try {
    join(ports.all(), "", 1, 2);
    ADD_FAILURE() << "no error";
  } catch (const TransportError& error) {
    EXPECT_NE(std::string(error.what()).find("it does not reply"), std::string::npos)
        << error.what();
  }
}

// It says less than an introduction has bytes, and then waits, or closes the connection.
TEST(Admission, AProgramThatSpeaksAnotherProtocolIsNamed) {
  struct Case {
    bool closes;
    std::string banner;
  };
  for (const Case& one : {Case(false, "SSH-2.0-OpenSSH_9.2\r\n"), Case(true, "220 mail\r\n"),
                          Case(false, "+OK\r\n"), Case(true, "ro!")}) {
    const Ports ports(1);
    const FileDescriptor listener = listen_at(loopback(ports[0]));
    std::thread program([&] {
      ready_before(listener, POLLIN, deadline_after(kPatient));
      const FileDescriptor stranger(::accept(listener.get(), nullptr, nullptr));
      send_all(stranger, one.banner.data(), one.banner.size(), deadline_after(kPatient));
      Introduction introduction;
      receive_all(stranger, &introduction, sizeof(introduction), deadline_after(kPatient));
      if (one.closes) return;
      char nothing = 0;  // comes when the stranger has left
      receive_all(stranger, &nothing, sizeof(nothing), deadline_after(kPatient));
    });
    try {
      join(ports.all(), "", 1, 2);
      ADD_FAILURE() << "no error";
    } catch (const TransportError& error) {
      EXPECT_NE(std::string(error.what()).find("does not speak Rondo's protocol"),
                std::string::npos)
          << error.what();
    }
    program.join();
  }
}

TEST(Admission, ASocketThatAKilledRank0HasLeftStopsNoLaterRun) {
  const std::vector<int> codes = test::run_forked(3, [&](const test::ForkedRank& me) {
    const std::string path = me.socket + ".left";
    if (me.rank == 2) {  // was killed
      const pid_t child = ::fork();
      if (child == 0) {
        SocketBootstrap never(meet_at_path(path), 0, 2, kPatient);
        ::_exit(1);
      }
      while (::access(path.c_str(), F_OK) != 0) std::this_thread::yield();
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      return ::rename(path.c_str(), (path + ".now").c_str()) == 0 ? 0 : 1;
    }
    while (::access((path + ".now").c_str(), F_OK) != 0) std::this_thread::yield();
    SocketBootstrap bootstrap(meet_at_path(path + ".now"), me.rank, 2, kPatient);
    if (bootstrap.exchange(me.rank)[1] != 1) return 1;
    return ::access((path + ".now").c_str(), F_OK) == 0 ? 2 : 0;
  });
  EXPECT_EQ(codes, std::vector<int>(3, 0));
}

TEST(Admission, APathThatIsNoAbandonedSocketStaysAsItIs) {
  const std::vector<int> codes = test::run_forked(1, [&](const test::ForkedRank& me) {
    const std::string path = me.socket + ".file";
    const FileDescriptor file(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    int code = 1;
    try {
      SocketBootstrap never(meet_at_path(path), 0, 2, kPatient);
    } catch (const TransportError& error) {
      code = std::string(error.what()).find("cannot make the socket") != std::string::npos ? 0 : 2;
    }
    return ::unlink(path.c_str()) == 0 ? code : 3;
  });
  EXPECT_EQ(codes, std::vector<int>{0});
}

}  // namespace
}  // namespace rondo::detail

// Ranks as processes that share devices by IPC and meet at a Unix socket. The parent never uses a
// device, so that its children can.

#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cuda/device_checks.hpp"
#include "tests/cuda/device_exchanges.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/ucx.hpp"

namespace rondo::test {
namespace {

using namespace std::chrono_literals;

constexpr int kNoDevice = 77;

cuda::Communicator join(const ForkedRank& me, const cuda::Options& options = {},
                        const CommunicatorOptions& host = {}) {
  return cuda::join(from_socket(me.socket, me.rank, me.size, host), options);
}

// Runs `body` in each process and compares the exit codes. Without a device the test is skipped.
void expect_codes(int size, const std::vector<int>& expected,
                  const std::function<int(const ForkedRank&)>& body) {
  const std::vector<int> codes = run_forked(size, [&](const ForkedRank& me) {
    if (cuda::device_count() == 0) return kNoDevice;
    try {
      return body(me);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", me.rank, error.what());
      return 99;
    }
  });
  if (codes[0] == kNoDevice) GTEST_SKIP() << "no CUDA device";
  EXPECT_EQ(codes, expected);
}

class DeviceProcesses : public ::testing::TestWithParam<int> {};

TEST_P(DeviceProcesses, EveryCollective) {
  const int size = GetParam();
  expect_codes(size, std::vector<int>(static_cast<std::size_t>(size), 0), [](const ForkedRank& me) {
    cuda::Communicator comm = join(me, {.device = 0, .channels = 2});
    for (const Edge& edge : comm.topology().edges) {
      if (edge.carrier != Carrier::ipc) return 1;
    }
    DeviceRank rank(comm);
    for (const std::size_t count : {0U, 5U, 4099U, 50021U}) {
      prepare_all_collectives<float>(rank, count, me.size > 1 && count < 10000);
      rank.run();
    }
    return ::testing::Test::HasFailure() ? 2 : 0;
  });
}

TEST_P(DeviceProcesses, EveryExchange) {
  const int size = GetParam();
  expect_codes(size, std::vector<int>(static_cast<std::size_t>(size), 0), [](const ForkedRank& me) {
    for (const cuda::PeerAccess access : {cuda::PeerAccess::automatic, cuda::PeerAccess::avoided}) {
      cuda::Communicator comm = join(me, {.device = 0, .peer_access = access, .channels = 2});
      check_device_exchanges<float>(comm);
    }
    return ::testing::Test::HasFailure() ? 2 : 0;
  });
}

TEST_P(DeviceProcesses, DirectInRegisteredMemory) {
  const int size = GetParam();
  expect_codes(size, std::vector<int>(static_cast<std::size_t>(size), 0), [](const ForkedRank& me) {
    cuda::Communicator comm = join(me, {.device = 0, .channels = 2});
    DeviceRank rank(comm);
    using What = DeviceCall<float>::What;
    for (int round = 0; round < 2; ++round) {
      for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter,
                                          Collective::all_gather, Collective::broadcast}) {
        rank.prepare<float>(What{collective, ReduceOp::avg, Algorithm::direct, 30011, me.size - 1,
                                 round == 0, 0, true});
        rank.prepare<float>(
            What{collective, ReduceOp::sum, Algorithm::automatic, 5003, 0, round == 0, 1, false});
      }
      rank.run();
    }
    return ::testing::Test::HasFailure() ? 2 : 0;
  });
}

TEST_P(DeviceProcesses, ThroughPinnedMemory) {
  const int size = GetParam();
  expect_codes(size, std::vector<int>(static_cast<std::size_t>(size), 0), [](const ForkedRank& me) {
    cuda::Communicator comm = join(me, {.device = cuda::kSpreadOverDevices,
                                        .peer_access = cuda::PeerAccess::avoided,
                                        .channels = 2});
    DeviceRank rank(comm);
    prepare_all_collectives<Float16>(rank, 10007, false);
    rank.run();
    return ::testing::Test::HasFailure() ? 2 : 0;
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceProcesses, ::testing::Range(1, 9));

TEST(DeviceProcess, AHundredBarriers) {
  expect_codes(2, {0, 0}, [](const ForkedRank& me) {
    cuda::Communicator comm = join(me, {.device = 0, .channels = 1});
    const DeviceStream stream(0);
    for (int i = 0; i < 100; ++i) comm.barrier(stream.get());
    comm.wait(stream.get());
    return 0;
  });
}

TEST(DeviceProcess, OneThatIsKilledIsNamed) {
  expect_codes(2, {0, 200}, [](const ForkedRank& me) {
    cuda::Communicator comm = join(me, {.device = 0, .channels = 1}, {.timeout = 300s});
    const DeviceStream stream(0);
    const DeviceBuffer<float> buffer(0, 10000, 1.0F);
    try {
      for (int call = 0; call < 10000; ++call) {
        if (me.rank == 1 && call == 5) ::raise(SIGKILL);
        comm.all_reduce(buffer.span(), ReduceOp::sum, stream.get());
        comm.wait(stream.get());
      }
    } catch (const PeerError& error) {
      const std::string_view text = error.what();
      return text.find("rank 1 (process") != std::string_view::npos ? 0 : 1;
    } catch (const CudaError&) {
      return 0;  // rank 1's memory was freed while this rank's kernel wrote to it
    }
    return 2;
  });
}

TEST(DeviceProcess, OneThatLeavesFirstIsNotMissed) {
  expect_codes(3, {0, 0, 0}, [](const ForkedRank& me) {
    cuda::Communicator comm = join(me, {.device = 0, .channels = 1}, {.timeout = 30s});
    const DeviceStream stream(0);
    const DeviceBuffer<float> buffer(0, 10, 1.0F);
    comm.broadcast(buffer.span(), 0, stream.get());
    comm.wait(stream.get());
    if (me.rank == 0) return 0;  // leaves, and ends
    // For the other ranks nothing has failed.
    for (int look = 0; look < 20; ++look) {
      ::usleep(10000);
      comm.check();
    }
    return 0;
  });
}

// Rank 1 receives later than the second that a rank which leaves grants at least. Its kernel then
// writes into rank 0's memory, which the driver would have taken away had that process ended.
TEST(DeviceProcess, OneThatHasSentStaysUntilItsMessageIsReceived) {
  expect_codes(2, {0, 0}, [](const ForkedRank& me) {
    std::optional<cuda::Communicator> comm = join(me, {.device = 0, .channels = 1});
    const std::string has_left = me.socket + ".left";
    const DeviceStream stream(0);
    std::vector<int> data(100);
    std::iota(data.begin(), data.end(), 5);
    const DeviceBuffer<int> buffer(0, me.rank == 0 ? data : std::vector<int>(100));
    if (me.rank == 0) {
      comm->send(buffer.span(), 1, stream.get());
      comm.reset();
      return std::ofstream(has_left) ? 0 : 1;
    }
    const auto receive_at = std::chrono::steady_clock::now() + 1500ms;
    while (std::chrono::steady_clock::now() < receive_at) {
      if (std::filesystem::exists(has_left)) return 2;
      ::usleep(10000);
    }
    comm->recv(buffer.span(), 0, stream.get());
    comm->wait(stream.get());
    return buffer.read() == data ? 0 : 3;
  });
}

void wait_for_end_of(int process) {
  pollfd end = {static_cast<int>(::syscall(SYS_pidfd_open, process, 0)), POLLIN, 0};
  if (end.fd < 0) return;  // it has ended, and its parent knows
  while (::poll(&end, 1, -1) < 0) {
  }
  ::close(end.fd);
}

// Three hosts, between which UCX sees that rank 2's process has ended. The others go on.
TEST(DeviceProcess, OneThatLeavesFirstIsNotMissedByUcx) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    if (cuda::device_count() == 0) return kNoDevice;
    const std::string host = "rondo-test-" + std::to_string(me.rank);
    if (::unshare(CLONE_NEWUTS) != 0 || ::sethostname(host.c_str(), host.size()) != 0) return 78;
    ::setenv("UCX_MEM_EVENTS", "no", 1);  // which address sanitizers do not endure
    try {
      cuda::Communicator comm =
          cuda::join(from_store("file://" + std::filesystem::path(me.socket).parent_path().string(),
                                me.rank, me.size, {.timeout = 60s}),
                     {.device = 0});
      const DeviceStream stream(0);
      const DeviceBuffer<int> buffer(0, 100, me.rank + 7);
      const DeviceBuffer<int> other(0, 100, 0);
      std::vector<int> processes(3);
      processes[static_cast<std::size_t>(me.rank)] = ::getpid();
      comm.host().all_gather(processes);
      comm.all_reduce(buffer.span(), ReduceOp::max, stream.get());
      // Connects every rank with every other.
      comm.all_to_all(buffer.span().first(99), other.span().first(99), stream.get());
      comm.wait(stream.get());
      if (me.rank == 2) return 0;
      wait_for_end_of(processes[2]);
      for (int look = 0; look < 100;
           ++look) {  // longer than UCX is given to hear why a process has ended
        comm.check();
        ::usleep(10000);
      }
      if (me.rank == 0) comm.send(buffer.span(), 1, stream.get());
      if (me.rank == 1) comm.recv(buffer.span(), 0, stream.get());
      comm.wait(stream.get());
      return buffer.read() == std::vector<int>(100, 9) ? 0 : 2;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", me.rank, error.what());
      return 1;
    }
  });
  if (codes[0] == kNoDevice) GTEST_SKIP() << "no CUDA device";
  if (codes[0] == 78) GTEST_SKIP() << "only root may name hosts";
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

TEST(DeviceProcess, WhatOneRankMeetsAllThrow) {
  expect_codes(2, {0, 0}, [](const ForkedRank& me) {
    try {
      join(me, {.device = me.rank == 1 ? 1000 : 0});
    } catch (const UsageError& error) {
      return std::string_view(error.what()).find("rank 1: cuda::Options::device is 1000") !=
                     std::string_view::npos
                 ? 0
                 : 1;
    }
    return 2;
  });
}

TEST(DeviceProcess, DifferentOptionsAreRefused) {
  expect_codes(2, {0, 0}, [](const ForkedRank& me) {
    try {
      join(me, {.device = 0, .channels = 1 + me.rank});
    } catch (const UsageError& error) {
      return std::string_view(error.what()).find("channels 1 and 2") != std::string_view::npos ? 0
                                                                                               : 1;
    }
    return 2;
  });
}

}  // namespace
}  // namespace rondo::test

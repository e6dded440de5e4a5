// Ranks as processes that share devices by IPC and meet at a Unix socket. The parent never uses a device, so that its
// children can.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cuda/device_checks.hpp"
#include "tests/cuda/device_exchanges.hpp"
#include "tests/support/forked.hpp"

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

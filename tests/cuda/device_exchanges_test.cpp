// Messages, gather, scatter, all_to_all and chunks of different sizes, on device memory. Runs on
// the stand-in everywhere, and, linked with the CUDA runtime, on a GPU.

#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cuda/device_checks.hpp"
#include "tests/cuda/device_exchanges.hpp"
#include "tests/support/errors.hpp"

namespace rondo::test {
namespace {

using namespace std::chrono_literals;

// A thread for each rank.
void run_ranks(std::vector<cuda::Communicator> group,
               const std::function<void(cuda::Communicator&)>& body) {
  std::vector<std::thread> threads;
  for (cuda::Communicator& comm : group) threads.emplace_back([&] { body(comm); });
  for (std::thread& thread : threads) thread.join();
}

class DeviceExchange : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device: " << cuda::why_no_device();
  }
};

TEST_P(DeviceExchange, EveryElementComesWhereItBelongs) {
  run_ranks(cuda::local_group(on_one_device(GetParam()), {.slot_bytes = 256, .slots = 2}),
            [](cuda::Communicator& comm) {
              check_device_exchanges<std::uint8_t>(comm);
              check_device_exchanges<std::int32_t>(comm);
              check_device_exchanges<double>(comm);
            });
}

TEST_P(DeviceExchange, OnSeveralDevices) {
  run_ranks(cuda::local_group(spread(GetParam())),
            [](cuda::Communicator& comm) { check_device_exchanges<float>(comm); });
}

TEST_P(DeviceExchange, OfSixteenBits) {
  run_ranks(cuda::local_group(spread(GetParam())),
            [](cuda::Communicator& comm) { check_device_exchanges<BFloat16>(comm); });
}

// Groups by rank modulo 2, and all ranks once more: their messages do not mix.
TEST_P(DeviceExchange, OfCommunicatorsThatWereSplitOff) {
  run_ranks(cuda::local_group(spread(GetParam()), {.channels = 1}), [](cuda::Communicator& comm) {
    std::optional<cuda::Communicator> part = comm.split(comm.rank() % 2);
    cuda::Communicator all = comm.duplicate();
    // No rank allocates or frees memory while another group's kernels may wait for each other.
    DeviceExchanges<std::int32_t> in_part(*part, most_exchanged(part->size(), kExchangeSizes[3]));
    DeviceExchanges<std::int32_t> in_all(all, most_exchanged(all.size(), kExchangeSizes[3]));
    comm.host().barrier();
    for (const bool asynchronous : {false, true}) {
      check_exchanges<std::int32_t>(in_part, asynchronous);
      check_exchanges<std::int32_t>(in_all, asynchronous);
    }
    comm.host().barrier();
  });
}

TEST_P(DeviceExchange, ThroughPinnedMemory) {
  run_ranks(cuda::local_group(on_one_device(GetParam()),
                              {.peer_access = cuda::PeerAccess::avoided, .channels = 1}),
            [](cuda::Communicator& comm) { check_device_exchanges<std::int32_t>(comm); });
}

TEST_P(DeviceExchange, LargeOddCounts) {
  constexpr std::size_t kEach = 100'003;
  run_ranks(cuda::local_group(spread(GetParam())), [](cuda::Communicator& comm) {
    DeviceExchanges<std::int32_t> exchanges(comm, most_exchanged(comm.size(), kEach));
    comm.host().barrier();
    ExchangeCheck<std::int32_t, DeviceExchanges<std::int32_t>>(exchanges, kEach, false).all();
    comm.host().barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceExchange, ::testing::Values(1, 2, 3, 4, 8));

// Ranks that one thread drives, each with a stream and with one buffer to send and one to receive.
class Driven {
 public:
  Driven(int ranks, std::size_t count, const cuda::Options& options = {},
         const CommunicatorOptions& host = {})
      : group_(cuda::local_group(on_one_device(ranks), options, host)) {
    for (int rank = 0; rank < ranks; ++rank) {
      streams_.emplace_back(0);
      in_.emplace_back(0, values(rank, count));
      out_.emplace_back(0, count, -1);
    }
  }

  static std::vector<int> values(int rank, std::size_t count) {
    std::vector<int> values(count);
    std::iota(values.begin(), values.end(), rank * 1'000'003);
    return values;
  }

  [[nodiscard]] cuda::Communicator& comm(int rank) { return group_[index(rank)]; }
  [[nodiscard]] cuda::Stream stream(int rank) { return streams_[index(rank)].get(); }
  [[nodiscard]] std::span<int> in(int rank) { return in_[index(rank)].span(); }
  [[nodiscard]] std::span<int> out(int rank) { return out_[index(rank)].span(); }
  std::vector<int> received(int rank) {
    comm(rank).wait(stream(rank));
    return out_[index(rank)].read();
  }
  [[nodiscard]] int size() const { return static_cast<int>(group_.size()); }
  // What a rank's wait throws; empty if nothing.
  std::string error_of(int rank) {
    try {
      comm(rank).wait(stream(rank));
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  std::vector<cuda::Communicator> group_;
  std::deque<DeviceBuffer<int>> in_;
  std::deque<DeviceBuffer<int>> out_;
  // Destroyed first, when their work has ended: a kernel of a call that failed may still use the
  // buffers.
  std::deque<DeviceStream> streams_;
};

class DeviceMessage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device: " << cuda::why_no_device();
  }
};

// Much longer than the FIFOs. Receives are enqueued before the sends.
TEST_F(DeviceMessage, OneThreadDrivesAllRanks) {
  constexpr std::size_t kCount = 300'007;
  Driven ranks(3, kCount);
  ranks.comm(1).recv(ranks.out(1), 0, ranks.stream(1));
  ranks.comm(2).recv(ranks.out(2), 1, ranks.stream(2));
  ranks.comm(0).send(ranks.in(0), 1, ranks.stream(0));
  ranks.comm(1).send(ranks.out(1), 2, ranks.stream(1));  // what it has received
  ranks.comm(0).recv(ranks.out(0), 2, ranks.stream(0));
  ranks.comm(2).send(ranks.out(2), 0, ranks.stream(2));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ranks.received(rank), Driven::values(0, kCount)) << rank;
  }
}

// sendrecv sends and receives independently, whatever is at the other ends.
TEST_F(DeviceMessage, ASendrecvGoesWithSendsAndReceives) {
  constexpr std::size_t kCount = 300'007;
  for (const int channels : {0, 1}) {
    for (const bool receives_first : {true, false}) {
      Driven ranks(2, kCount, {.channels = channels});
      ranks.comm(0).sendrecv(ranks.in(0), 1, ranks.out(0), 1, ranks.stream(0));
      if (receives_first) ranks.comm(1).recv(ranks.out(1), 0, ranks.stream(1));
      ranks.comm(1).send(ranks.in(1), 0, ranks.stream(1));
      if (!receives_first) ranks.comm(1).recv(ranks.out(1), 0, ranks.stream(1));
      for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(ranks.received(rank), Driven::values(1 - rank, kCount)) << rank;
      }
    }
  }
  // Sizes that differ: each side may use another number of channels.
  Driven ranks(2, kCount);
  const std::span<int> few = ranks.in(1).first(5);
  ranks.comm(0).sendrecv(ranks.in(0), 1, ranks.out(0).first(5), 1, ranks.stream(0));
  ranks.comm(1).sendrecv(few, 0, ranks.out(1), 0, ranks.stream(1));
  EXPECT_EQ(ranks.received(1), Driven::values(0, kCount));
  std::vector<int> expected(kCount, -1);
  const std::vector<int> first = Driven::values(1, 5);
  std::copy(first.begin(), first.end(), expected.begin());
  EXPECT_EQ(ranks.received(0), expected);
}

// Short messages fit the FIFO: the sender does not wait, and they arrive in order.
TEST_F(DeviceMessage, ArriveInTheOrderInWhichTheyWereSent) {
  Driven ranks(2, 40, {.slots = 16});
  for (std::size_t begin = 0; begin < 40; begin += 5) {
    ranks.comm(0).send(ranks.in(0).subspan(begin, 5), 1, ranks.stream(0));
  }
  ranks.comm(0).wait(ranks.stream(0));
  for (std::size_t begin = 0; begin < 40; begin += 5) {
    ranks.comm(1).recv(ranks.out(1).subspan(begin, 5), 0, ranks.stream(1));
  }
  EXPECT_EQ(ranks.received(1), Driven::values(0, 40));
}

// Between two ranks, collectives of all meanwhile.
TEST_F(DeviceMessage, FollowOtherCalls) {
  constexpr std::size_t kCount = 1000;
  Driven ranks(3, kCount);
  for (int round = 0; round < 20; ++round) {
    const int from = round % 3;
    const int to = (round + 1) % 3;
    ranks.comm(from).send(ranks.in(from), to, ranks.stream(from));
    for (int rank = 0; rank < 3; ++rank) {
      ranks.comm(rank).barrier(ranks.stream(rank));
      ranks.comm(rank).broadcast(ranks.in(rank), from, ranks.stream(rank));
    }
    ranks.comm(to).recv(ranks.out(to), from, ranks.stream(to));
    for (int rank = 0; rank < 3; ++rank) {
      ranks.comm(rank).all_to_all(ranks.in(rank).first(999), ranks.out(rank).first(999),
                                  ranks.stream(rank));
    }
  }
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<int> got = ranks.received(rank);
    const std::vector<int> all = Driven::values(0, kCount);  // which rank 0 broadcast first
    for (std::size_t i = 0; i < 999; ++i) {
      ASSERT_EQ(got[i], all[static_cast<std::size_t>(rank) * 333 + i % 333]) << rank << ' ' << i;
    }
  }
}

TEST_F(DeviceMessage, ACapturedExchangeIsReplayed) {
  constexpr std::size_t kCount = 4099;
  Driven ranks(2, kCount);
  std::vector<detail::gpu::api::Graph> graphs;
  for (int rank = 0; rank < 2; ++rank) {
    const std::size_t own = rank == 0 ? 99 : 4000;
    const std::size_t offset = rank == 0 ? 0 : 99;
    detail::gpu::api::begin_capture(ranks.stream(rank));
    {
      // The call has copied the counts when it returns.
      const std::vector<std::size_t> counts = {99, 4000};
      ranks.comm(rank).all_gather_v(ranks.in(rank).subspan(offset, own), ranks.out(rank), counts,
                                    ranks.stream(rank));
    }
    // Both ranks' vectors become the one that they have gathered, moved by a message to the other
    // rank and back.
    for (int move = 0; move < 2; ++move) {
      ranks.comm(rank).sendrecv(move == 0 ? ranks.out(rank) : ranks.in(rank), 1 - rank,
                                move == 0 ? ranks.in(rank) : ranks.out(rank), 1 - rank,
                                ranks.stream(rank));
    }
    graphs.push_back(detail::gpu::api::end_capture(ranks.stream(rank)));
  }
  std::vector<int> expected = Driven::values(0, kCount);
  const std::vector<int> of_one = Driven::values(1, kCount);
  std::copy(of_one.begin() + 99, of_one.end(), expected.begin() + 99);
  for (int replay = 0; replay < 5; ++replay) {
    for (int rank = 0; rank < 2; ++rank) {
      detail::gpu::api::launch(graphs[static_cast<std::size_t>(rank)], ranks.stream(rank));
    }
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks.received(rank), expected) << rank;
    detail::gpu::api::destroy(graphs[static_cast<std::size_t>(rank)]);
  }
}

TEST_F(DeviceMessage, AnotherSizeOrCallIsAMismatch) {
  // Both one channel and several.
  for (const std::size_t count : {100U, 100'000U}) {
    Driven ranks(2, count, {}, {.timeout = 60s});
    ranks.comm(0).send(ranks.in(0), 1, ranks.stream(0));
    ranks.comm(1).recv(ranks.out(1).first(count - 1), 0, ranks.stream(1));
    const std::string error = ranks.error_of(1);
    const auto message = [](std::size_t elements) {
      return "a message from rank 0 (" + std::to_string(elements) + " x i32)";
    };
    EXPECT_NE(
        error.find("rank 1 expects " + message(count - 1) + ", but rank 0 sent " + message(count)),
        std::string::npos)
        << error;
    EXPECT_THROW(ranks.comm(0).send(ranks.in(0), 1, ranks.stream(0)), PeerError);
  }
  Driven ranks(2, 100, {}, {.timeout = 60s});
  for (int rank = 0; rank < 2; ++rank) ranks.comm(rank).barrier(ranks.stream(rank));
  ranks.comm(0).send(ranks.in(0), 1, ranks.stream(0));
  ranks.comm(1).all_to_all(ranks.in(1), ranks.out(1), ranks.stream(1));
  const std::string error = ranks.error_of(1);
  EXPECT_NE(error.find("rank 1 made call 1 all_to_all(100 x i32) by pairwise, but rank 0 sent a "
                       "message from rank 0 (100 x i32)"),
            std::string::npos)
      << error;
}

TEST_F(DeviceMessage, OneThatNobodySendsIsATimeout) {
  Driven ranks(2, 100, {}, {.timeout = 200ms});
  ranks.comm(1).recv(ranks.out(1), 0, ranks.stream(1));
  const std::string error = ranks.error_of(1);
  EXPECT_NE(error.find("rank 1: its device waited for rank 0 until the deadline of a message from "
                       "rank 0 (100 x i32)"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("see whether the other rank makes that call"), std::string::npos) << error;
  EXPECT_THROW(ranks.comm(0).check(), PeerError);
}

TEST_F(DeviceMessage, AnAbortStopsBothHalvesOfASendrecv) {
  Driven ranks(2, 300'007, {}, {.timeout = 600s});
  ranks.comm(0).sendrecv(ranks.in(0), 1, ranks.out(0), 1, ranks.stream(0));
  ranks.comm(1).abort("enough");
  EXPECT_NE(ranks.error_of(0).find("enough"), std::string::npos);
}

TEST_F(DeviceMessage, CountsThatDifferAreAMismatch) {
  Driven ranks(2, 12, {}, {.timeout = 60s});
  for (int rank = 0; rank < 2; ++rank) {
    const std::vector<std::size_t> counts =
        rank == 0 ? std::vector<std::size_t>{4, 8} : std::vector<std::size_t>{8, 4};
    const auto own = ranks.out(rank).first(counts[static_cast<std::size_t>(rank)]);
    ranks.comm(rank).reduce_scatter_v(ranks.in(rank), own, counts, ranks.stream(rank));
  }
  int mismatches = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string error = ranks.error_of(rank);
    EXPECT_NE(error.find("reduce_scatter(12 x i32, sum, counts with checksum"), std::string::npos)
        << error;
    mismatches += error.find("rank " + std::to_string(rank) + " made call 0") == 0 ? 1 : 0;
  }
  EXPECT_GE(mismatches, 1);
}

// By `naive` too, which adds up in scratch memory.
TEST_F(DeviceMessage, CountsByEveryAlgorithm) {
  const std::vector<std::size_t> counts = {0, 1000, 7};
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::naive}) {
    Driven ranks(3, 1007);
    for (int rank = 0; rank < 3; ++rank) {
      const auto own = ranks.out(rank).first(counts[static_cast<std::size_t>(rank)]);
      ranks.comm(rank).reduce_scatter_v(ranks.in(rank), own, counts, ReduceOp::sum,
                                        ranks.stream(rank), {.algorithm = algorithm});
    }
    for (int rank = 0; rank < 3; ++rank) {
      const std::vector<int> got = ranks.received(rank);
      const std::size_t offset = rank == 2 ? 1000 : 0;
      for (std::size_t i = 0; i < counts[static_cast<std::size_t>(rank)]; ++i) {
        ASSERT_EQ(got[i], 3'000'009 + 3 * static_cast<int>(offset + i)) << rank << ' ' << i;
      }
      EXPECT_EQ(got.back(), -1);
    }
  }
}

TEST_F(DeviceMessage, ToItselfIsACopy) {
  constexpr std::size_t kCount = 1000;
  Driven ranks(2, kCount);
  cuda::Communicator& comm = ranks.comm(1);
  comm.sendrecv(ranks.in(1).first(0), 1, ranks.out(1).first(0), 1, ranks.stream(1));
  detail::gpu::api::begin_capture(ranks.stream(1));
  comm.sendrecv(ranks.in(1), 1, ranks.out(1), 1, ranks.stream(1));
  const detail::gpu::api::Graph graph = detail::gpu::api::end_capture(ranks.stream(1));
  detail::gpu::api::launch(graph, ranks.stream(1));
  EXPECT_EQ(ranks.received(1), Driven::values(1, kCount));
  detail::gpu::api::destroy(graph);
}

TEST_F(DeviceMessage, TheReceivingHalfOfASendrecvMayFailAlone) {
  for (const bool sends : {true, false}) {
    Driven ranks(2, 100, {}, {.timeout = sends ? 60s : 1s});
    ranks.comm(0).sendrecv(ranks.in(0), 1, ranks.out(0), 1, ranks.stream(0));
    ranks.comm(1).recv(ranks.out(1), 0, ranks.stream(1));
    if (sends) ranks.comm(1).send(ranks.in(1).first(7), 0, ranks.stream(1));
    const std::string error = ranks.error_of(0);
    EXPECT_NE(
        error.find(sends ? "rank 0 expects a message from rank 1 (100 x i32), but rank 1 sent "
                           "a message from rank 1 (7 x i32)"
                         : "until the deadline of a message from rank 1 (100 x i32)"),
        std::string::npos)
        << error;
  }
}

TEST_F(DeviceMessage, AnotherRootIsAMismatch) {
  Driven ranks(2, 100, {}, {.timeout = 60s});
  for (int rank = 0; rank < 2; ++rank) {
    ranks.comm(rank).gather(ranks.in(rank).first(50), ranks.out(rank), rank, ranks.stream(rank));
  }
  int mismatches = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string error = ranks.error_of(rank);
    EXPECT_NE(error.find("gather(100 x i32, root"), std::string::npos) << error;
    mismatches += error.find("Make the same calls") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(mismatches, 1);
}

TEST_F(DeviceMessage, RankOrderRefusesCountsWhereTheOrderMatters) {
  std::vector<cuda::Communicator> group =
      cuda::local_group(on_one_device(3), {}, {.rank_order = true});
  const DeviceStream stream(0);
  const DeviceBuffer<float> buffer(0, 12, 1.0F);
  const std::vector<std::size_t> counts = {4, 4, 4};
  const std::string error =
      usage_error([&] { group[0].reduce_scatter_v(buffer.span(), counts, stream.get()); });
  EXPECT_NE(error.find("reductions with counts do not keep it on devices"), std::string::npos)
      << error;
}

// Slots that are so large that FIFOs between all ranks would take too much memory: these get
// smaller ones.
TEST_F(DeviceMessage, LargeSlotsAreForTheRingAlone) {
  constexpr std::size_t kCount = 100'003;
  Driven ranks(4, kCount, {.slot_bytes = 16U << 20U, .slots = 2});
  for (int rank = 0; rank < 4; ++rank) {
    ranks.comm(rank).sendrecv(ranks.in(rank), (rank + 1) % 4, ranks.out(rank), (rank + 3) % 4,
                              ranks.stream(rank));
  }
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(ranks.received(rank), Driven::values((rank + 3) % 4, kCount)) << rank;
  }
}

TEST_F(DeviceMessage, BadArgumentsAreUsageErrors) {
  Driven ranks(2, 12);
  cuda::Communicator& comm = ranks.comm(0);
  const cuda::Stream stream = ranks.stream(0);
  const auto expect = [](const std::string& text, auto&& call) {
    const std::string error = usage_error(call);
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  expect("receiver 2 is not a rank", [&] { comm.send(ranks.in(0), 2, stream); });
  expect("exchanges messages with itself only in a sendrecv",
         [&] { comm.recv(ranks.out(0), 0, stream); });
  expect("overlap; pass separate ones", [&] { comm.all_to_all(ranks.in(0), ranks.in(0), stream); });
  expect("only pairwise carries this call",
         [&] { comm.send(ranks.in(0), 1, stream, {.algorithm = Algorithm::ring}); });
  expect("pairwise carries messages, gather, scatter and all_to_all only", [&] {
    comm.all_reduce(ranks.in(0), ReduceOp::sum, stream, {.algorithm = Algorithm::pairwise});
  });
  const std::vector<std::size_t> counts = {4, 8};
  expect("direct cannot carry chunks of different sizes",
         [&] { comm.all_gather_v(ranks.in(0), counts, stream, {.algorithm = Algorithm::direct}); });
  for (int rank = 0; rank < 2; ++rank) {
    ranks.comm(rank).sendrecv(ranks.in(rank), 1 - rank, ranks.out(rank), 1 - rank,
                              ranks.stream(rank));
  }
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks.received(rank), Driven::values(1 - rank, 12));
  }
}

}  // namespace
}  // namespace rondo::test

// Groups of ranks on device memory, driven by threads. Runs on the stand-in everywhere, and, linked
// with the CUDA runtime, on a GPU.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cuda/device_checks.hpp"
#include "tests/support/collective_checks.hpp"

namespace rondo::test {
namespace {

using namespace std::chrono_literals;

bool says(const std::exception& error, const std::string& part) {
  return std::string_view(error.what()).find(part) != std::string_view::npos;
}

class Group {
 public:
  explicit Group(const std::vector<int>& devices, const cuda::Options& options = {},
                 const CommunicatorOptions& host_options = {})
      : comms_(cuda::local_group(devices, options, host_options)) {
    for (cuda::Communicator& comm : comms_) ranks_.emplace_back(comm);
  }
  std::vector<DeviceRank>& ranks() { return ranks_; }
  DeviceRank& operator[](std::size_t rank) { return ranks_[rank]; }
  // One thread drives all ranks.
  void each(const std::function<void(DeviceRank&)>& what) {
    for (DeviceRank& rank : ranks_) what(rank);
  }

 private:
  std::vector<cuda::Communicator> comms_;
  std::vector<DeviceRank> ranks_;
};

class DeviceGroups : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device: " << cuda::why_no_device();
  }
};

TEST_P(DeviceGroups, EveryTypeAndOperation) {
  Group group(on_one_device(GetParam()));
  for_each_type_and_op([&]<class T>(ReduceOp op) {
    using What = typename DeviceCall<T>::What;
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::one_shot, Algorithm::naive, Algorithm::direct}) {
      if (algorithm == Algorithm::one_shot && GetParam() == 1) continue;
      group.each([&](DeviceRank& rank) {
        rank.prepare<T>(What{Collective::all_reduce, op, algorithm, 5003, 0, false, 0});
        rank.prepare<T>(What{Collective::all_reduce, op, algorithm, 1021, 0, true, 1});
      });
    }
    run_all(group.ranks());
  });
}

TEST_P(DeviceGroups, EveryCollectiveAndCount) {
  Group group(on_one_device(GetParam()), {.slot_bytes = 1024, .slots = 2});
  for (const std::size_t count : {0U, 1U, 2U, 31U, 4096U, 20011U}) {
    const bool one_shot = GetParam() > 1 && count <= 4096;
    group.each([&](DeviceRank& rank) { prepare_all_collectives<float>(rank, count, one_shot); });
    run_all(group.ranks());
  }
}

TEST_P(DeviceGroups, ThroughPinnedMemory) {
  Group group(on_one_device(GetParam()), {.peer_access = cuda::PeerAccess::avoided, .channels = 2});
  group.each([&](DeviceRank& rank) {
    for (const Edge& edge : rank.comm().topology().edges) EXPECT_EQ(edge.carrier, Carrier::pinned);
    prepare_all_collectives<float>(rank, 10007, false);
    prepare_all_collectives<BFloat16>(rank, 3, false);
  });
  run_all(group.ranks());
}

TEST_P(DeviceGroups, RanksAsThreads) {
  Group group(spread(GetParam()));
  std::vector<std::thread> threads;
  for (DeviceRank& rank : group.ranks()) {
    threads.emplace_back([&rank] {
      for (int round = 0; round < 3; ++round) {
        prepare_all_collectives<double>(rank, 3001, false);
        rank.run();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Groups by rank modulo 2, in the reverse order of ranks, and all ranks once more.
TEST_P(DeviceGroups, SplitByColor) {
  Group group(spread(GetParam()));
  std::vector<std::thread> threads;
  for (DeviceRank& rank : group.ranks()) {
    threads.emplace_back([&rank] {
      const int mine = rank.comm().rank();
      std::optional<cuda::Communicator> part = rank.comm().split(mine % 2, -mine);
      const int size = rank.comm().size();
      ASSERT_TRUE(part.has_value());
      EXPECT_EQ(part->size(), (size + 1 - mine % 2) / 2);
      EXPECT_EQ(part->rank(), (size - 1 - mine) / 2);
      EXPECT_EQ(part->device(), rank.comm().device());
      EXPECT_FALSE(rank.comm().split(std::nullopt).has_value());
      cuda::Communicator all = rank.comm().duplicate();
      EXPECT_EQ(all.rank(), mine);
      // No rank allocates or frees memory while another group's kernels may wait for each other.
      std::array<DeviceRank, 2> members{DeviceRank(*part), DeviceRank(all)};
      for (DeviceRank& member : members) prepare_all_collectives<double>(member, 3001, false);
      rank.comm().host().barrier();
      for (DeviceRank& member : members) {
        member.start();
        member.finish();
      }
      rank.comm().host().barrier();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceGroups, ::testing::Range(1, 9));

class DeviceGroup : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device: " << cuda::why_no_device();
  }
};

TEST_F(DeviceGroup, TypedCallsAndManyChannels) {
  Group group(on_one_device(2));
  std::deque<DeviceBuffer<float>> buffers;
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<float> values(300001);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = exact::input<float>(ReduceOp::avg, rank, 2, i);
    }
    buffers.emplace_back(0, values);
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    group[rank].comm().all_reduce(buffers[rank].span(), ReduceOp::avg, group[rank].stream());
    group[rank].comm().barrier(group[rank].stream());
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    group[rank].comm().wait(group[rank].stream());
    const std::vector<float> values = buffers[rank].read();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      wrong += values[i] == exact::result<float>(ReduceOp::avg, 2, i) ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0U);
  }
}

TEST_F(DeviceGroup, ABarrierOfTwoThreads) {
  Group group(on_one_device(2), {.channels = 1});
  std::vector<std::thread> threads;
  for (DeviceRank& rank : group.ranks()) {
    threads.emplace_back([&rank] {
      rank.comm().barrier(rank.stream());
      rank.comm().wait(rank.stream());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(DeviceGroup, CallsOnDifferentStreamsFollowEachOther) {
  Group group(on_one_device(2));
  std::deque<DeviceBuffer<std::int32_t>> buffers;
  buffers.emplace_back(0, std::vector<std::int32_t>(5000, 1));
  buffers.emplace_back(0, std::vector<std::int32_t>(5000, 1));
  std::deque<DeviceStream> second;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    second.emplace_back(0);
    for (int call = 0; call < 10; ++call) {
      const cuda::Stream stream = call % 2 == 0 ? group[rank].stream() : second[rank].get();
      group[rank].comm().all_reduce(buffers[rank].span(), ReduceOp::sum, stream);
    }
  }
  for (std::size_t rank = 0; rank < 2; ++rank) group[rank].comm().wait(second[rank].get());
  for (const auto& buffer : buffers) {
    EXPECT_EQ(buffer.read(), std::vector<std::int32_t>(5000, 1024));
  }
}

TEST_F(DeviceGroup, ACapturedCallIsReplayed) {
  struct Size {
    std::size_t count;
    std::optional<Algorithm> algorithm;
  };
  for (const auto& [count, algorithm] :
       {Size{256, {}}, Size{100003, {}}, Size{100003, Algorithm::ring}}) {
    Group group(on_one_device(2));
    CallOptions options;
    options.algorithm = algorithm;
    std::deque<DeviceBuffer<std::uint32_t>> buffers;
    std::vector<detail::gpu::api::Graph> graphs;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      buffers.emplace_back(0, std::vector<std::uint32_t>(count, 1));
      detail::gpu::api::begin_capture(group[rank].stream());
      for (int call = 0; call < 3; ++call) {
        group[rank].comm().all_reduce(buffers[rank].span(), ReduceOp::sum, group[rank].stream(),
                                      options);
      }
      EXPECT_THROW(group[rank].comm().wait(group[rank].stream()), UsageError);
      graphs.push_back(detail::gpu::api::end_capture(group[rank].stream()));
    }
    for (int replay = 0; replay < 5; ++replay) {
      for (std::size_t rank = 0; rank < 2; ++rank) {
        detail::gpu::api::launch(graphs[rank], group[rank].stream());
      }
    }
    for (std::size_t rank = 0; rank < 2; ++rank) {
      group[rank].comm().wait(group[rank].stream());
      EXPECT_EQ(buffers[rank].read(), std::vector<std::uint32_t>(count, 1U << 15U));
      detail::gpu::api::destroy(graphs[rank]);
    }
  }
}

// Rank 0 makes 100 calls before rank 1 makes its first; it is never more than 128 calls ahead.
TEST_F(DeviceGroup, ARankRunsAheadOfTheDeviceByABoundedNumberOfCalls) {
  constexpr int kMost = 128;
  constexpr int kCalls = 1000;
  Group group(on_one_device(2), {.channels = 1});
  std::atomic<int> made_by_one = 0;
  std::atomic<int> most_ahead = 0;
  std::atomic<int> made_by_zero = 0;
  // Allocated before any call, since an allocation waits for running kernels.
  const DeviceBuffer<float> of_zero(0, 16, 1.0F);
  const DeviceBuffer<float> of_one(0, 16, 1.0F);
  const auto calls = [&](std::size_t rank, std::atomic<int>& made) {
    const DeviceBuffer<float>& buffer = rank == 0 ? of_zero : of_one;
    for (int call = 0; call < kCalls; ++call) {
      group[rank].comm().broadcast(buffer.span(), 0, group[rank].stream());
      if (rank == 0) most_ahead = std::max(most_ahead.load(), call - made_by_one.load());
      ++made;
    }
    group[rank].comm().wait(group[rank].stream());
  };
  std::thread zero([&] { calls(0, made_by_zero); });
  while (made_by_zero < 100) std::this_thread::yield();
  std::thread one([&] { calls(1, made_by_one); });
  zero.join();
  one.join();
  EXPECT_LE(most_ahead, kMost);
  EXPECT_GE(most_ahead, 99);
}

TEST_F(DeviceGroup, ARankThatStaysAwayIsATimeoutOfAllAndTheDeviceStaysUsable) {
  for (const std::size_t count : {16U, 100000U}) {
    {
      Group group(on_one_device(3), {}, {.timeout = 300ms});
      DeviceBuffer<float> a(0, count, 1.0F);
      DeviceBuffer<float> b(0, count, 1.0F);
      for (int call = 0; call < 5; ++call) {  // calls that use one channel
        group.each([](DeviceRank& rank) { rank.comm().barrier(rank.stream()); });
      }
      group[0].comm().all_reduce(a.span(), ReduceOp::sum, group[0].stream());
      group[1].comm().all_reduce(b.span(), ReduceOp::sum, group[1].stream());
      int timeouts = 0;
      for (std::size_t rank = 0; rank < 2; ++rank) {
        try {
          group[rank].comm().wait(group[rank].stream());
          ADD_FAILURE() << "rank " << rank << " did not fail";
        } catch (const TimeoutError& error) {
          ++timeouts;
          EXPECT_TRUE(says(error, "has not begun that call: 2.")) << error.what();
        } catch (const PeerError& error) {
          EXPECT_TRUE(says(error, "deadline")) << error.what();
        }
      }
      EXPECT_GE(timeouts, 1);
      EXPECT_THROW(group[2].comm().barrier(group[2].stream()), PeerError);
      EXPECT_THROW(group[2].comm().check(), PeerError);
    }
    Group fresh(on_one_device(3));
    fresh.each([](DeviceRank& rank) { prepare_all_collectives<float>(rank, 1000, true); });
    run_all(fresh.ranks());
  }
}

TEST_F(DeviceGroup, CallsThatDifferNameBoth) {
  Group group(on_one_device(2), {}, {.timeout = 60s});
  DeviceBuffer<float> buffer(0, 64, 1.0F);
  DeviceBuffer<float> other(0, 64, 1.0F);
  group[0].comm().all_reduce(buffer.span(), ReduceOp::sum, group[0].stream());
  group[1].comm().all_reduce(other.span(), ReduceOp::max, group[1].stream());
  int mismatches = 0;
  group.each([&](DeviceRank& rank) {
    try {
      rank.comm().wait(rank.stream());
      ADD_FAILURE();
    } catch (const MismatchError& error) {
      ++mismatches;
      EXPECT_TRUE(says(error, "64 x f32, sum") && says(error, "64 x f32, max")) << error.what();
    } catch (const PeerError& error) {
      EXPECT_TRUE(says(error, "64 x f32, max")) << error.what();
    }
  });
  EXPECT_GE(mismatches, 1);
}

// One rank uses one_shot, the other direct: neither reads the memory that the other writes.
TEST_F(DeviceGroup, CallsByDifferentAlgorithmsNameBoth) {
  Group group(on_one_device(2), {.one_shot_bytes = 1024}, {.timeout = 600s});
  DeviceBuffer<float> small(0, 256, 1.0F);
  DeviceBuffer<float> large(0, 257, 1.0F);
  group[0].comm().all_reduce(small.span(), ReduceOp::sum, group[0].stream());
  group[1].comm().all_reduce(large.span(), ReduceOp::sum, group[1].stream());
  int mismatches = 0;
  group.each([&](DeviceRank& rank) {
    try {
      rank.comm().wait(rank.stream());
      ADD_FAILURE();
    } catch (const MismatchError& error) {
      ++mismatches;
      EXPECT_TRUE(says(error, "256 x f32, sum) by one_shot") &&
                  says(error, "257 x f32, sum) by direct"))
          << error.what();
    } catch (const PeerError& error) {
      EXPECT_TRUE(says(error, "257 x f32")) << error.what();
    }
  });
  EXPECT_GE(mismatches, 1);
}

TEST_F(DeviceGroup, AbortStopsASpinningKernel) {
  Group group(on_one_device(2), {}, {.timeout = 600s});
  DeviceBuffer<float> buffer(0, 100000, 1.0F);
  group[0].comm().all_reduce(buffer.span(), ReduceOp::sum, group[0].stream());
  group[1].comm().abort("the loss is not a number");
  try {
    group[0].comm().wait(group[0].stream());
    ADD_FAILURE();
  } catch (const PeerError& error) {
    EXPECT_TRUE(says(error, "rank 1") && says(error, "the loss is not a number")) << error.what();
  }
  // The host communicator of the ranks has ended with it.
  EXPECT_THROW(group[0].comm().host().barrier(), PeerError);
}

TEST_F(DeviceGroup, WrongArgumentsAreRefusedAndNothingIsLost) {
  Group group(on_one_device(2), {.one_shot_bytes = 1024});
  DeviceBuffer<float> buffer(0, 1000, 1.0F);
  cuda::Communicator& comm = group[0].comm();
  Call call;
  call.collective = Collective::all_reduce;
  call.in = call.out = reinterpret_cast<std::byte*>(buffer.span().data()) + 2;
  call.count = 4;
  EXPECT_THROW(comm.enqueue(call, group[0].stream()), UsageError);
  EXPECT_THROW(comm.all_reduce(buffer.span(), ReduceOp::sum, group[0].stream(),
                               {.timeout = std::nullopt, .algorithm = Algorithm::one_shot}),
               UsageError);
  EXPECT_THROW(comm.broadcast(buffer.span(), 0, group[0].stream(),
                              {.timeout = std::nullopt, .algorithm = Algorithm::one_shot}),
               UsageError);
  EXPECT_THROW(comm.broadcast(buffer.span(), 7, group[0].stream()), UsageError);
  EXPECT_THROW(comm.all_reduce(buffer.span(), ReduceOp::sum, group[0].stream(), {.timeout = 0ms}),
               UsageError);
  group.each([](DeviceRank& rank) { prepare_all_collectives<float>(rank, 100, true); });
  run_all(group.ranks());
}

TEST_F(DeviceGroup, AutomaticIsOneShotForSmallVectorsAlone) {
  Group group(on_one_device(2), {.one_shot_bytes = 1024});
  std::vector<float> elements(257);
  Call call;
  call.collective = Collective::all_reduce;
  call.in = call.out = elements.data();
  call.count = 256;
  EXPECT_EQ(group[0].comm().algorithm_for(call), Algorithm::one_shot);
  call.count = 257;
  EXPECT_EQ(group[0].comm().algorithm_for(call), Algorithm::direct);
  call.count = 2;
  call.collective = Collective::reduce_scatter;
  EXPECT_EQ(group[0].comm().algorithm_for(call), Algorithm::direct);
  Group pinned(on_one_device(2), {.peer_access = cuda::PeerAccess::avoided});
  EXPECT_EQ(pinned[0].comm().algorithm_for(call), Algorithm::ring);
  call.options.algorithm = Algorithm::direct;
  EXPECT_THROW(static_cast<void>(pinned[0].comm().algorithm_for(call)), UsageError);
}

TEST_F(DeviceGroup, RanksThatDoNotFitAreRefused) {
  try {
    Group group(on_one_device(8), {.channels = 256, .threads = 512});
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_TRUE(says(error, "8 ranks of 256 blocks")) << error.what();
  }
  EXPECT_THROW(Group(on_one_device(2), {.threads = 33}), UsageError);
  EXPECT_THROW(Group(on_one_device(2), {.channels = 257}), UsageError);
  EXPECT_THROW(Group(on_one_device(2), {.slot_bytes = 100}), UsageError);
  EXPECT_THROW(Group(on_one_device(2), {.slots = 1}), UsageError);
  EXPECT_THROW(Group({0, cuda::device_count()}), UsageError);
}

}  // namespace
}  // namespace rondo::test

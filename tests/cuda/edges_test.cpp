// Which path is chosen between devices, what happens when a path is missing or loses data, and how
// CUDA's errors are reported. Runs on the stand-in, whose devices the tests configure.

#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/cuda_gradient_reducer.hpp>

#include "tests/cuda/device_checks.hpp"
#include "tests/cuda/device_exchanges.hpp"
#include "tests/cuda/stand_in.hpp"
#include "tests/support/forked.hpp"

namespace rondo::test {
namespace {

bool says(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

void expect_nothing_left() {
  const StandInBalance left = stand_in_balance();
  EXPECT_EQ(left.allocations, 0);
  EXPECT_EQ(left.registrations, 0);
  EXPECT_EQ(left.opened, 0);
  EXPECT_EQ(left.streams, 0);
  EXPECT_EQ(left.events, 0);
  EXPECT_EQ(left.pools, 0);
}

class DeviceEdges : public ::testing::Test {
 protected:
  void SetUp() override { stand_in() = {}; }
  // Everything that was allocated has been released.
  void TearDown() override {
    expect_nothing_left();
    stand_in() = {};
    fail_call(0);
  }
};

const Edge& edge_of(const std::vector<cuda::Communicator>& group, int from, int to) {
  for (const Edge& edge : group.front().topology().edges) {
    if (edge.from == from && edge.to == to) return edge;
  }
  throw std::out_of_range("no such edge");
}

void expect_exact(std::vector<cuda::Communicator>& group, bool with_one_shot) {
  std::vector<DeviceRank> ranks;
  for (cuda::Communicator& comm : group) ranks.emplace_back(comm);
  for (DeviceRank& rank : ranks) prepare_all_collectives<float>(rank, 2003, with_one_shot);
  run_all(ranks);
  std::vector<std::thread> threads;
  for (cuda::Communicator& comm : group) {
    threads.emplace_back([&] { check_device_exchanges<float>(comm); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(DeviceEdges, DevicesOfOneProcessReachEachOther) {
  stand_in().nvlinks = {{0, 1}, {1, 0}};
  std::vector<cuda::Communicator> group = cuda::local_group({0, 1, 1});
  EXPECT_EQ(edge_of(group, 0, 1).carrier, Carrier::p2p);
  EXPECT_EQ(edge_of(group, 0, 1).reason, "NVLink, one process");
  EXPECT_EQ(edge_of(group, 1, 2).reason, "one device, one process");
  EXPECT_EQ(group[2].topology().places[2].device, "GPU 1 (stand-in 1, 0000:02:00.0)");
  expect_exact(group, true);
}

TEST_F(DeviceEdges, TheRingFollowsFastLinks) {
  stand_in().nvlinks = {{0, 2}, {2, 0}, {1, 3}, {3, 1}};
  std::vector<cuda::Communicator> group = cuda::local_group({0, 1, 2, 3});
  EXPECT_EQ(group[0].topology().ring, (std::vector<int>{0, 1, 3, 2}));
  expect_exact(group, true);
}

TEST_F(DeviceEdges, WhoCannotReachGoesThroughPinnedMemory) {
  stand_in().cannot_reach = {{1, 0}};
  std::vector<cuda::Communicator> group = cuda::local_group({0, 1, 2});
  for (const auto& [from, to] : {std::pair{0, 1}, std::pair{1, 0}}) {
    EXPECT_EQ(edge_of(group, from, to).carrier, Carrier::pinned);
    EXPECT_EQ(
        edge_of(group, from, to).reason,
        "rank 1 towards rank 0: CUDA says that GPU 1 (stand-in 1, 0000:02:00.0) cannot reach GPU 0 "
        "(stand-in 0, 0000:01:00.0)");
  }
  EXPECT_EQ(edge_of(group, 1, 2).carrier, Carrier::p2p);
  expect_exact(group, false);
  // one_shot needs direct access between all devices.
  std::vector<float> elements(2);
  Call call;
  call.collective = Collective::all_reduce;
  call.in = call.out = elements.data();
  call.count = 1;
  EXPECT_EQ(group[0].algorithm_for(call), Algorithm::ring);
}

// A call by direct that fails withdraws its buffers with an atomic operation on the other device's
// memory.
TEST_F(DeviceEdges, DirectNeedsAtomicOperationsBetweenDevices) {
  stand_in().nvlinks = {{0, 1}, {1, 0}, {0, 2}, {2, 0}, {1, 2}};
  std::vector<cuda::Communicator> group = cuda::local_group({0, 1, 2});
  std::vector<float> elements(2);
  Call call = all_reduce_of(std::span(elements));
  call.options.algorithm = Algorithm::direct;
  try {
    static_cast<void>(group[0].algorithm_for(call));
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_TRUE(says(error.what(), "joined by PCIe, which carries no atomic operations"))
        << error.what();
  }
  expect_exact(group, true);
}

TEST_F(DeviceEdges, AWayThatLosesDataIsFoundOut) {
  stand_in().loses_writes = {{2, 1}};
  std::vector<cuda::Communicator> group = cuda::local_group({0, 1, 2});
  for (const auto& [from, to] : {std::pair{1, 2}, std::pair{2, 0}}) {
    SCOPED_TRACE(from);
    const bool broken = from == 1;
    EXPECT_EQ(edge_of(group, from, to).carrier, broken ? Carrier::pinned : Carrier::p2p);
  }
  EXPECT_TRUE(says(edge_of(group, 1, 2).reason,
                   "rank 2 towards rank 1: 512 of 512 words of a test pattern did not arrive"));
  expect_exact(group, false);
}

TEST_F(DeviceEdges, ARequiredWayThatIsMissingIsAnError) {
  stand_in().cannot_reach = {{0, 1}};
  try {
    cuda::local_group({0, 1}, {.peer_access = cuda::PeerAccess::required});
    ADD_FAILURE();
  } catch (const TransportError& error) {
    EXPECT_TRUE(
        says(error.what(), "PeerAccess::required refuses pinned host memory from rank 0 to rank 1"))
        << error.what();
    EXPECT_TRUE(says(error.what(), "cannot reach GPU 1")) << error.what();
  }
  stand_in().cannot_reach.clear();
  std::vector<cuda::Communicator> group =
      cuda::local_group({0, 1}, {.peer_access = cuda::PeerAccess::required});
  expect_exact(group, true);
}

// Two processes between which IPC does not work: their edges are pinned, with `reason`.
void expect_pinned_between_processes(const std::string& reason) {
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    cuda::Communicator comm =
        cuda::join(from_socket(me.socket, me.rank, me.size), {.device = 0, .channels = 2});
    for (const Edge& edge : comm.topology().edges) {
      if (edge.carrier != Carrier::pinned || !says(edge.reason, reason)) return 1;
    }
    DeviceRank rank(comm);
    prepare_all_collectives<float>(rank, 3001, false);
    rank.run();
    return ::testing::Test::HasFailure() ? 2 : 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0})) << reason;
}

TEST_F(DeviceEdges, WithoutIpcProcessesGoThroughPinnedMemory) {
  stand_in().ipc_works = false;
  expect_pinned_between_processes("cudaIpcGetMemHandle");
  stand_in() = {};
  stand_in().fails = "cudaIpcOpenMemHandle";
  expect_pinned_between_processes("cudaIpcOpenMemHandle on device 0");
  stand_in() = {};
  stand_in().loses_foreign_writes = true;
  expect_pinned_between_processes("words of a test pattern did not arrive");
}

TEST_F(DeviceEdges, RequiredIpcThatDoesNotWorkIsAnErrorOfAll) {
  stand_in().ipc_works = false;
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    try {
      cuda::join(from_socket(me.socket, me.rank, me.size),
                 {.device = 0, .peer_access = cuda::PeerAccess::required});
    } catch (const TransportError& error) {
      return says(error.what(), "PeerAccess::required refuses pinned host memory") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// Ranks 1 and 3 are not adjacent in the ring: only one_shot needs access between them.
TEST_F(DeviceEdges, AWayThatOnlyOneShotNeedsIsAskedForToo) {
  stand_in().cannot_reach = {{1, 3}};
  std::vector<cuda::Communicator> group = cuda::local_group({0, 1, 2, 3});
  for (const Edge& edge : group[0].topology().edges) EXPECT_EQ(edge.carrier, Carrier::p2p);
  expect_exact(group, false);
  std::vector<float> elements(2);
  Call call;
  call.collective = Collective::all_reduce;
  call.in = call.out = elements.data();
  call.count = 1;
  EXPECT_EQ(group[0].algorithm_for(call), Algorithm::ring);
  EXPECT_THROW(cuda::local_group({0, 1, 2, 3}, {.peer_access = cuda::PeerAccess::required}),
               TransportError);
}

TEST_F(DeviceEdges, WhatCudaRefusesAtTheStartIsAnErrorOfAll) {
  for (const char* call : {"cudaMalloc", "cudaFuncGetAttributes", "cudaHostRegister"}) {
    stand_in().fails = call;
    try {
      cuda::local_group({0, 0});
      ADD_FAILURE() << call;
    } catch (const CudaError& error) {
      EXPECT_TRUE(says(error.what(), std::string("rank 0: ") + call + " on device 0"))
          << error.what();
    }
  }
  stand_in().fails.clear();
  stand_in().devices = 0;
  EXPECT_THROW(cuda::local_group({0, 0}), CudaError);
}

// Two ranks join and run iterations with a reducer. Each time, CUDA refuses another one of the
// calls that they make. Whichever it is, both ranks end, and have released everything that they had
// allocated.
TEST_F(DeviceEdges, ARefusalAnywhereLeaksNothing) {
  const DeviceBuffer<float> gradients[] = {{0, 100, 1.0F}, {1, 100, 1.0F}};
  const DeviceStream streams[] = {DeviceStream(0), DeviceStream(1)};
  const StandInBalance before = stand_in_balance();
  const auto iterate = [&](cuda::Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    const auto part = [&](std::size_t of) { return gradients[rank].span().subspan(50 * of, 50); };
    const std::vector<std::size_t> counts = {50, 50};
    comm.all_gather_v(part(rank), gradients[rank].span(), counts, streams[rank].get());
    comm.sendrecv(part(rank), 1 - comm.rank(), part(1 - rank), 1 - comm.rank(),
                  streams[rank].get());
    // This one takes memory from the pool.
    comm.reduce(gradients[rank].span(), 1, ReduceOp::sum, streams[rank].get(),
                {.algorithm = Algorithm::naive});
    cuda::GradientReducer reducer(comm,
                                  {Parameter::owned_gradient_only<float>("owned", 100),
                                   Parameter::gradient_only("given", gradients[rank].span())},
                                  {.bucket_bytes = 100, .average = Average::sum});
    for (int iteration = 0; iteration < 2; ++iteration) {
      for (const std::size_t i : {0U, 1U}) reducer.mark_ready(i, streams[rank].get());
      reducer.finish(streams[rank].get());
      comm.wait(streams[rank].get());
    }
  };
  int refused = 0;
  for (;; ++refused) {
    fail_call(refused + 1);
    try {
      std::vector<cuda::Communicator> group = cuda::local_group({0, 1});
      std::vector<std::thread> threads;
      for (cuda::Communicator& comm : group) {
        threads.emplace_back([&] {
          try {
            iterate(comm);
          } catch (const Error&) {
            // Other tests check its text.
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
    } catch (const Error&) {
      // Likewise.
    }
    if (!call_has_failed()) break;
    ASSERT_EQ(stand_in_balance(), before) << "call " << refused + 1;
  }
  EXPECT_GT(refused, 100);
}

// Ranks on two devices. Whichever of CUDA's calls fails while they register memory, all throw, and
// nothing is left over.
TEST_F(DeviceEdges, RegisteredMemoryIsGivenBack) {
  std::vector<cuda::Communicator> group = cuda::local_group({0, 1});
  const StandInBalance before = stand_in_balance();
  const auto on_both = [&](const std::function<void(cuda::Communicator&)>& body) {
    std::vector<std::thread> threads;
    for (cuda::Communicator& comm : group) threads.emplace_back([&] { body(comm); });
    for (std::thread& thread : threads) thread.join();
  };
  int refused = 0;
  for (;; ++refused) {
    fail_call(refused + 1);
    std::atomic<int> thrown = 0;
    on_both([&](cuda::Communicator& comm) {
      try {
        const auto memory = comm.allocate<float>(1000);
        const auto more = comm.allocate<float>(10);
      } catch (const CudaError&) {
        ++thrown;
      }
    });
    if (!call_has_failed()) break;
    EXPECT_NE(thrown, 1) << "call "
                         << refused + 1;  // a handle for other processes is not needed here
    fail_call(0);
    on_both([](cuda::Communicator& comm) { static_cast<void>(comm.allocate<float>(0)); });
    ASSERT_EQ(stand_in_balance(), before) << "call " << refused + 1;
  }
  fail_call(0);
  EXPECT_GE(refused, 8);  // two allocations on each rank, each with a handle
  std::vector<cuda::RegisteredMemory<float>> kept;
  std::mutex mutex;
  on_both([&](cuda::Communicator& comm) {
    auto mine = comm.allocate<float>(100);
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(mine));
  });
  group.clear();  // memory outlives its communicator
  EXPECT_EQ(stand_in_balance().allocations, 2);
}

// Each thread of a block waits for another rank: whichever waits shows the hosts the call.
TEST_F(DeviceEdges, CallsThatNeverMeetAreNamedWhicheverThreadWaits) {
  stand_in().threads_per_block = 3;
  for (std::size_t other = 0; other < 3; ++other) {
    std::vector<cuda::Communicator> group =
        cuda::local_group({0, 0, 0}, {.channels = 1}, {.timeout = std::chrono::seconds(600)});
    std::vector<std::unique_ptr<DeviceStream>> streams;
    std::vector<std::unique_ptr<DeviceBuffer<float>>> buffers;
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      streams.push_back(std::make_unique<DeviceStream>(0));
      buffers.push_back(std::make_unique<DeviceBuffer<float>>(0, 100, 1.0F));
    }
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      CallOptions options;
      options.algorithm = rank == other ? Algorithm::one_shot : Algorithm::direct;
      group[rank].all_reduce(buffers[rank]->span(), ReduceOp::sum, streams[rank]->get(), options);
    }
    int mismatches = 0;
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      try {
        group[rank].wait(streams[rank]->get());
        ADD_FAILURE() << "rank " << rank;
      } catch (const MismatchError& error) {
        ++mismatches;
        EXPECT_TRUE(says(error.what(), "by one_shot") && says(error.what(), "by direct"))
            << error.what();
      } catch (const PeerError& error) {
        EXPECT_TRUE(says(error.what(), "by direct")) << error.what();
      }
    }
    EXPECT_GE(mismatches, 1) << "rank " << other << " uses one_shot";
  }
}

// Buckets that are not there yet, in options that allow direct alone.
TEST_F(DeviceEdges, ReducersThatNeedDirectMayGrowTheirBuckets) {
  for (const bool named : {true, false}) {
    CommunicatorOptions host;
    host.rank_order = !named;
    std::vector<cuda::Communicator> group = cuda::local_group({0, 1, 2}, {}, host);
    std::vector<std::thread> threads;
    std::atomic<int> right = 0;
    for (cuda::Communicator& comm : group) {
      threads.emplace_back([&] {
        const DeviceStream stream(comm.device());
        GradientOptions options;
        options.average = Average::sum;
        options.bucket_bytes = named ? 4096 : 200000;
        if (named) options.algorithm = Algorithm::direct;
        const std::size_t count = named ? 400 : 4000;
        const std::size_t parameters = named ? 6 : 60;
        std::vector<Parameter> model(parameters);
        for (Parameter& parameter : model) {
          parameter.count = count;
          parameter.type = DataType::f32;
        }
        cuda::GradientReducer reducer(comm, model, options);
        for (int iteration = 0; iteration < 3; ++iteration) {
          for (std::size_t i = 0; i < parameters; ++i) {
            const std::vector<float> ones(count, 1.0F);
            detail::gpu::api::copy(reducer.gradient(i, DataType::f32), ones.data(),
                                   count * sizeof(float));
            reducer.mark_ready(i, stream.get());
          }
          reducer.finish(stream.get());
          comm.wait(stream.get());
          std::vector<float> sums(count);
          detail::gpu::api::copy(sums.data(), reducer.gradient(0, DataType::f32),
                                 count * sizeof(float));
          right += sums == std::vector<float>(count, 3.0F) ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 9) << named;
  }
}

TEST_F(DeviceEdges, AKernelThatCannotStartEndsTheCommunicator) {
  std::vector<cuda::Communicator> group = cuda::local_group({0, 0});
  const DeviceStream stream(0);
  const DeviceBuffer<float> buffer(0, 100, 1.0F);
  stand_in().fails = "cudaLaunchKernel";
  EXPECT_THROW(group[0].all_reduce(buffer.span(), ReduceOp::sum, stream.get()), CudaError);
  stand_in().fails.clear();
  try {
    group[1].all_reduce(buffer.span(), ReduceOp::sum, stream.get());
    ADD_FAILURE();
  } catch (const PeerError& error) {
    EXPECT_TRUE(says(error.what(), "rank 0: cudaLaunchKernel on device 0")) << error.what();
  }
}

TEST_F(DeviceEdges, TooManyRanksForTheConnectionsAreRefused) {
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 1);
  try {
    cuda::local_group(std::vector<int>(8, 0));
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_TRUE(says(error.what(), "CUDA_DEVICE_MAX_CONNECTIONS to 32")) << error.what();
  }
  std::vector<cuda::Communicator> spread = cuda::local_group({0, 1, 2, 3, 0, 1, 2, 3, 0});
  expect_exact(spread, true);
}

TEST_F(DeviceEdges, RanksThatShareADeviceAreToldOfLazyLoading) {
  std::mutex mutex;
  std::string told;
  set_log_hook(
      [&](LogLevel, std::string_view text) {
        const std::lock_guard lock(mutex);
        told += text;
      },
      LogLevel::warning);
  ::setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  cuda::local_group({0, 1});
  EXPECT_EQ(told, "");
  cuda::local_group({0, 1, 1});
  EXPECT_TRUE(says(told, "rank 1: ranks of this process share")) << told;
  EXPECT_TRUE(says(told, "CUDA_MODULE_LOADING to EAGER")) << told;
  told.clear();
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  cuda::local_group({0, 0});
  EXPECT_EQ(told, "");
  ::unsetenv("CUDA_MODULE_LOADING");
  set_log_hook({});
}

TEST_F(DeviceEdges, BlocksOfSeveralThreads) {
  stand_in().threads_per_block = 3;
  std::vector<cuda::Communicator> group = cuda::local_group({0, 0, 1});
  expect_exact(group, true);
}

}  // namespace
}  // namespace rondo::test

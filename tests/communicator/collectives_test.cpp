// Every collective, type, reduction and algorithm on groups of ranks in one process.

#include <numeric>

#include <gtest/gtest.h>

#include "tests/support/collective_checks.hpp"
#include "tests/support/exchange_checks.hpp"
#include "tests/support/ranks.hpp"

namespace rondo::test {
namespace {

const CommunicatorOptions kSmallSlots{.slot_bytes = 256, .slots = 4};

class Group : public ::testing::TestWithParam<std::tuple<int, Algorithm>> {};

TEST_P(Group, EveryTypeAndReduction) {
  const int size = std::get<0>(GetParam());
  const Algorithm algorithm = std::get<1>(GetParam());
  run_ranks(size, kSmallSlots, [algorithm](Communicator& comm) {
    const auto n = static_cast<std::size_t>(comm.size());
    for_each_type_and_op([&]<class T>(ReduceOp op) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n - 1, n, n + 1}) {
        CollectiveCheck<T>(comm, count, op, algorithm).all();
      }
      // Odd, and several windows of several slices.
      CollectiveCheck<T>(comm, 2311, op, algorithm).all();
    });
  });
}

TEST_P(Group, EveryRareTypeAndReduction) {
  const int size = std::get<0>(GetParam());
  const Algorithm algorithm = std::get<1>(GetParam());
  run_ranks(size, kSmallSlots, [algorithm](Communicator& comm) {
    const auto n = static_cast<std::size_t>(comm.size());
    for_each_rare_type_and_op([&]<class T>(ReduceOp op) {
      for (const std::size_t count : {n - 1, std::size_t{777}}) {
        CollectiveCheck<T>(comm, count, op, algorithm).all();
      }
    });
  });
}

TEST_P(Group, LargeOddCountsWithDefaultSlots) {
  const int size = std::get<0>(GetParam());
  const Algorithm algorithm = std::get<1>(GetParam());
  run_ranks(size, {}, [algorithm](Communicator& comm) {
    CollectiveCheck<float>(comm, 1234567, ReduceOp::avg, algorithm).all_reduce();
    CollectiveCheck<BFloat16>(comm, 654321, ReduceOp::sum, algorithm).all_reduce();
    CollectiveCheck<std::int64_t>(comm, 745677, ReduceOp::max, algorithm).reduce_scatter();
    CollectiveCheck<double>(comm, 745677, ReduceOp::prod, algorithm).all_gather();
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Group,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5, 8),
                                            ::testing::Values(Algorithm::ring, Algorithm::naive,
                                                              Algorithm::direct)));

class OneShot : public ::testing::TestWithParam<int> {};

// Sizes that fit into the header of an outbox, sizes that do not, and the largest that fits into an
// outbox.
TEST_P(OneShot, EveryTypeReductionAndCollective) {
  run_ranks(GetParam(), {}, [](Communicator& comm) {
    const auto n = static_cast<std::size_t>(comm.size());
    for_each_type_and_op([&]<class T>(ReduceOp op) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n - 1, n + 1, 24 / sizeof(T),
                                      24 / sizeof(T) + 1, (std::size_t{64} << 10U) / sizeof(T)}) {
        CollectiveCheck<T>(comm, count, op, Algorithm::one_shot).all();
      }
    });
  });
}

TEST_P(OneShot, EveryRareTypeAndReduction) {
  run_ranks(GetParam(), {}, [](Communicator& comm) {
    for_each_rare_type_and_op([&]<class T>(ReduceOp op) {
      for (const std::size_t count : {1U, 301U}) {
        CollectiveCheck<T>(comm, count, op, Algorithm::one_shot).all();
      }
    });
  });
}

// Calls reuse the outboxes at once: a rank that runs ahead must not overwrite data that others
// still read.
TEST_P(OneShot, CallsFollowEachOtherAndOtherAlgorithms) {
  run_ranks(GetParam(), {}, [](Communicator& comm) {
    for (std::uint64_t call = 0; call < 3000; ++call) {
      std::vector<std::uint64_t> data(call % 7 * 50);
      for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = call * 1000 + i + static_cast<std::uint64_t>(comm.rank());
      }
      const auto n = static_cast<std::uint64_t>(comm.size());
      if (call % 5 == 0) comm.barrier();
      comm.all_reduce(data, ReduceOp::sum,
                      {.algorithm = call % 11 == 3 ? Algorithm::ring : Algorithm::one_shot});
      for (std::size_t i = 0; i < data.size(); ++i) {
        ASSERT_EQ(data[i], n * (call * 1000 + i) + n * (n - 1) / 2) << "call " << call;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, OneShot, ::testing::Values(1, 2, 3, 4, 8));

class Tree : public ::testing::TestWithParam<int> {};

TEST_P(Tree, EveryTypeAndReduction) {
  const auto n = static_cast<std::size_t>(GetParam());
  // Fewer slots than its schedule needs, too.
  for (const CommunicatorOptions& options :
       {kSmallSlots, CommunicatorOptions{.slot_bytes = 64, .slots = 2}}) {
    run_ranks(GetParam(), options, [n](Communicator& comm) {
      for_each_type_and_op([&]<class T>(ReduceOp op) {
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n - 1, n + 1, 5 * n + 3}) {
          CollectiveCheck<T>(comm, count, op, Algorithm::tree).all_but_all_reduce();
        }
      });
      CollectiveCheck<float>(comm, 2311, ReduceOp::avg, Algorithm::tree).all_but_all_reduce();
    });
  }
}

TEST_P(Tree, ChunksOfOtherSizes) {
  run_ranks(GetParam(), {.algorithm = Algorithm::tree, .slots = 6}, [](Communicator& comm) {
    for (const std::size_t each : {0U, 1U, 300U, 20'000U}) {
      ExchangeCheck<float>(comm, each, false).with_counts();
    }
  });
}

TEST_P(Tree, LargeOddCountsWithDefaultSlots) {
  run_ranks(GetParam(), {}, [](Communicator& comm) {
    CollectiveCheck<float>(comm, 345677, ReduceOp::sum, Algorithm::tree).all_but_all_reduce();
  });
}

// A message that is received only afterwards does not stand in a tree's way.
TEST_P(Tree, PassesMessagesThatNobodyHasReceivedYet) {
  if (GetParam() == 1) return;
  run_ranks(GetParam(), {}, [](Communicator& comm) {
    const int n = comm.size();
    const int next = (comm.rank() + 1) % n;
    const int prev = (comm.rank() + n - 1) % n;
    for (int round = 0; round < 50; ++round) {
      std::vector<int> message(10, 1000 * round + comm.rank());
      comm.send(std::span<const int>(message), next);
      CollectiveCheck<int>(comm, 40, ReduceOp::sum, Algorithm::tree).all_but_all_reduce();
      comm.recv(std::span<int>(message), prev);
      ASSERT_EQ(message, std::vector<int>(10, 1000 * round + prev));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Tree, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 11));

TEST(ManyRanks, OfOneHostAgree) {
  run_ranks(128, {}, [](Communicator& comm) {
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::naive, Algorithm::one_shot, Algorithm::direct}) {
      std::vector<int> data(1000);
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int>(i) + comm.rank();
      comm.all_reduce(data, ReduceOp::sum, {.algorithm = algorithm});
      for (std::size_t i = 0; i < data.size(); ++i) {
        ASSERT_EQ(data[i], 128 * static_cast<int>(i) + 127 * 128 / 2) << name(algorithm);
      }
    }
  });
}

TEST(OneShot, ADefaultIsAWishAndACallsOwnIsAnOrder) {
  run_ranks(2, {.algorithm = Algorithm::one_shot}, [](Communicator& comm) {
    CollectiveCheck<float>(comm, 100000, ReduceOp::sum, Algorithm::ring).all_reduce();
    std::vector<float> data(100000, 1.0F);
    comm.all_reduce(data);
    EXPECT_EQ(data, std::vector<float>(100000, 2.0F));
    EXPECT_THROW(comm.all_reduce(data, ReduceOp::sum, {.algorithm = Algorithm::one_shot}),
                 UsageError);
    comm.barrier();
  });
}

TEST(Group, TheSmallestFifoWorks) {
  run_ranks(4, {.slot_bytes = 64, .slots = 2}, [](Communicator& comm) {
    CollectiveCheck<float>(comm, 1003, ReduceOp::sum, Algorithm::ring).all();
    CollectiveCheck<float>(comm, 1003, ReduceOp::sum, Algorithm::naive).all();
  });
}

TEST(Group, ResultsHaveTheSameBitsOnAllRanksAndRuns) {
  constexpr std::size_t kCount = 10001;
  std::vector<float> first;
  for (int run = 0; run < 3; ++run) {
    std::vector<std::vector<float>> results(4);
    run_ranks(4, {}, [&](Communicator& comm) {
      std::vector<float> data(kCount);
      for (std::size_t i = 0; i < kCount; ++i) {  // sums that depend on their order
        data[i] = static_cast<float>(exact::mix(i * 4 + static_cast<std::size_t>(comm.rank())) %
                                     1000003) *
                  1e-3F;
      }
      comm.all_reduce(data, ReduceOp::avg);
      results[static_cast<std::size_t>(comm.rank())] = data;
    });
    for (const auto& result : results) EXPECT_TRUE(result == results[0]);
    if (run == 0) first = results[0];
    EXPECT_TRUE(results[0] == first);
  }
}

TEST(Group, AcceptsSpansVectorsAndArrays) {
  run_ranks(2, {}, [](Communicator& comm) {
    std::array<int, 3> array{1, 2, 3};
    comm.all_reduce(array);
    EXPECT_EQ(array, (std::array{2, 4, 6}));
    std::vector<float> vector(5, 1.0F);
    comm.all_reduce(std::span(vector).first(2), ReduceOp::sum);
    EXPECT_EQ(vector, (std::vector<float>{2, 2, 1, 1, 1}));
    const std::vector<float> in(5, 3.0F);
    comm.all_reduce(in, vector, ReduceOp::max);
    EXPECT_EQ(vector, in);
  });
}

// A result cannot be written to a constant.
static_assert(Element<std::int64_t> && !Element<const std::int64_t>);

TEST(Group, AcceptsOneElement) {
  run_ranks(3, {}, [](Communicator& comm) {
    auto loss = static_cast<float>(comm.rank() + 1);
    comm.all_reduce(loss, ReduceOp::avg);
    EXPECT_EQ(loss, 2);
    std::int64_t steps = comm.rank() + 5;
    comm.all_reduce(steps);
    EXPECT_EQ(steps, 18);
    comm.broadcast(steps, 2);
    EXPECT_EQ(steps, 18);
    double seconds = comm.rank() == 1 ? 0.5 : 7;
    comm.broadcast(seconds, 1, {.algorithm = Algorithm::naive});
    EXPECT_EQ(seconds, 0.5);
    int samples = comm.rank() + 10;
    comm.reduce(samples, 1, ReduceOp::max);
    EXPECT_EQ(samples, comm.rank() == 1 ? 12 : comm.rank() + 10);
  });
}

TEST(Group, TheEnvironmentChoosesAndTheCodeWins) {
  ::setenv("RONDO_ALGO", "naive", 1);
  run_ranks(2, {}, [](Communicator& comm) { EXPECT_EQ(comm.algorithm_for({}), Algorithm::naive); });
  run_ranks(2, {.algorithm = Algorithm::ring},
            [](Communicator& comm) { EXPECT_EQ(comm.algorithm_for({}), Algorithm::ring); });
  ::setenv("RONDO_ALGO", "rong", 1);
  try {
    local_group(2);
    ADD_FAILURE();
  } catch (const UsageError& error) {
    for (int i = 0; i < kAlgorithmCount; ++i) {
      const std::string known(name(static_cast<Algorithm>(i)));
      EXPECT_NE(std::string(error.what()).find(known), std::string::npos) << known;
    }
  }
  ::unsetenv("RONDO_ALGO");
  run_ranks(2, {}, [](Communicator& comm) {
    Call call;
    EXPECT_EQ(comm.algorithm_for(call), Algorithm::one_shot);
    call.options.algorithm = Algorithm::naive;
    EXPECT_EQ(comm.algorithm_for(call), Algorithm::naive);
  });
}

TEST(Async, CallsRunInOrderOfIssue) {
  run_ranks(3, {}, [](Communicator& comm) {
    constexpr int kCalls = 50;
    std::vector<std::vector<std::int64_t>> buffers;
    for (int i = 0; i < kCalls; ++i) {
      buffers.emplace_back(1000, comm.rank() + i);
    }
    std::vector<Work> works;
    for (auto& buffer : buffers) works.push_back(comm.all_reduce_async(buffer));
    // A blocking call comes after what is queued.
    std::vector<std::int64_t> last = {1};
    comm.all_reduce(last);
    EXPECT_EQ(last[0], 3);
    for (int i = 0; i < kCalls; ++i) {
      EXPECT_TRUE(works[static_cast<std::size_t>(i)].done());
      works[static_cast<std::size_t>(i)].wait();
      EXPECT_EQ(buffers[static_cast<std::size_t>(i)], std::vector<std::int64_t>(1000, 3 + 3 * i));
    }
  });
}

TEST(Async, EveryCollectiveHasAnAsynchronousForm) {
  run_ranks(2, {}, [](Communicator& comm) {
    std::vector<int> all(4, 1);
    std::vector<int> whole(4);
    std::vector<int> part(2);
    comm.all_reduce_async(all).wait();
    EXPECT_EQ(all, (std::vector<int>{2, 2, 2, 2}));
    comm.all_reduce_async(all, whole).wait();
    EXPECT_EQ(whole, (std::vector<int>{4, 4, 4, 4}));
    comm.reduce_scatter_async(whole, part).wait();
    EXPECT_EQ(part, (std::vector<int>{8, 8}));
    comm.all_gather_async(part, whole).wait();
    EXPECT_EQ(whole, (std::vector<int>{8, 8, 8, 8}));
    whole.assign(4, comm.rank());
    comm.broadcast_async(whole, 1).wait();
    EXPECT_EQ(whole, (std::vector<int>{1, 1, 1, 1}));
    comm.reduce_async(whole, 1).wait();
    EXPECT_EQ(whole[0], comm.rank() == 1 ? 2 : 1);
    comm.reduce_async(whole, all, 0).wait();
    EXPECT_EQ(all[0], comm.rank() == 0 ? 3 : 2);
    comm.reduce_scatter_async(all).wait();
    comm.all_gather_async(all).wait();
    comm.barrier_async().wait();
  });
}

TEST(CallOptions, MayDifferInWhetherACallRunsInTheBackground) {
  run_ranks(3, {}, [](Communicator& comm) {
    for (int call = 0; call < 20; ++call) {
      std::vector<int> data(1000, call + comm.rank());
      comm.all_reduce(data, ReduceOp::sum, {.background = (comm.rank() + call) % 2 == 0});
      EXPECT_EQ(data, std::vector<int>(1000, 3 * call + 3));
    }
  });
}

TEST(Async, AnEmptyWorkIsDone) {
  const Work work;
  EXPECT_TRUE(work.done());
  work.wait();
}

TEST(Async, TheDestructorFinishesWhatIsQueued) {
  std::vector<std::vector<float>> buffers(2, std::vector<float>(100000, 1.0F));
  run_ranks(2, {}, [&](Communicator& comm) {
    Communicator mine = std::move(comm);
    static_cast<void>(mine.all_reduce_async(buffers[static_cast<std::size_t>(mine.rank())]));
  });
  for (const auto& buffer : buffers) EXPECT_EQ(buffer, std::vector<float>(100000, 2.0F));
}

TEST(Topology, OfALocalGroupIsARing) {
  const std::vector<Communicator> group = local_group(4);
  const Topology& topology = group[2].topology();
  EXPECT_EQ(topology.ring, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(topology.places.size(), 4U);
  int in_ring = 0;
  for (const Edge& edge : topology.edges) {
    EXPECT_EQ(edge.carrier, Carrier::shm);
    EXPECT_FALSE(edge.reason.empty());
    in_ring += edge.in_ring ? 1 : 0;
  }
  EXPECT_EQ(in_ring, 4);
}

}  // namespace
}  // namespace rondo::test

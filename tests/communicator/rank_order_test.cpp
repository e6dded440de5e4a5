// The bits of reductions do not depend on size, bucket, algorithm or placement.

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/forked.hpp"
#include "tests/support/rank_order_checks.hpp"
#include "tests/support/ranks.hpp"

namespace rondo::test {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 7, 1000, 50'003};

class RankOrder : public testing::TestWithParam<int> {};

TEST_P(RankOrder, OfTheAlgorithmsThatKeepIt) {
  run_ranks(GetParam(), {}, [](Communicator& comm) {
    for_each_rounded([&]<class T>(ReduceOp op) {
      for (const Algorithm algorithm : {Algorithm::one_shot, Algorithm::direct, Algorithm::chain}) {
        for (const std::size_t count : {1U, 1000U}) {
          expect_rank_order<T>(comm, count, op, {.algorithm = algorithm});
        }
      }
    });
  });
}

TEST_P(RankOrder, IsKeptByThreadsWhateverTheirSlots) {
  for (const CommunicatorOptions& options :
       {CommunicatorOptions{.rank_order = true},
        CommunicatorOptions{.algorithm = Algorithm::ring, .rank_order = true, .slot_bytes = 256}}) {
    run_ranks(GetParam(), options, [](Communicator& comm) {
      for_each_rounded([&]<class T>(ReduceOp op) {
        for (const std::size_t count : kCounts) expect_rank_order<T>(comm, count, op, {});
      });
    });
  }
}

TEST_P(RankOrder, IsKeptByProcessesWhateverTheirBuffers) {
  const std::vector<int> codes = run_forked(GetParam(), [](const ForkedRank& me) {
    Communicator comm = from_socket(me.socket, me.rank, me.size, {.rank_order = true});
    RegisteredMemory<double> memory = comm.allocate<double>(50'003);
    for_each_rounded([&]<class T>(ReduceOp op) {
      const std::span<T> registered(reinterpret_cast<T*>(memory.data()), memory.size());
      for (const std::size_t count : kCounts) {
        expect_rank_order<T>(comm, count, op, {});
        expect_rank_order<T>(comm, count, op, {}, registered);
      }
    });
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(GetParam()), 0));
}

// Gradients in buckets of many sizes.
TEST_P(RankOrder, IsKeptByAReducerWhateverItsBuckets) {
  const std::vector<std::size_t> sizes = {3000, 1, 70, 20'000, 500};
  for (const std::size_t bucket_bytes : {100U, 5000U, 1'000'000U}) {
    const std::vector<int> codes = run_forked(GetParam(), [&](const ForkedRank& me) {
      Communicator comm = from_socket(me.socket, me.rank, me.size, {.rank_order = true});
      std::vector<Parameter> parameters;
      for (const std::size_t size : sizes)
        parameters.push_back(Parameter::owned_gradient_only<float>("p", size));
      GradientOptions options;
      options.bucket_bytes = bucket_bytes;
      options.average = Average::sum;
      GradientReducer reducer(comm, parameters, options);
      for (int iteration = 0; iteration < 3; ++iteration) {
        for (std::size_t p = 0; p < sizes.size(); ++p) {
          const std::span<float> gradient = reducer.gradient<float>(p);
          for (std::size_t i = 0; i < gradient.size(); ++i) {
            gradient[i] = ordered_input<float>(ReduceOp::sum, me.rank, i);
          }
          reducer.mark_ready(p);
        }
        reducer.finish();
        for (std::size_t p = 0; p < sizes.size(); ++p) {
          expect_bits<float>(reducer.gradient<float>(p),
                             ordered_result<float>(ReduceOp::sum, me.size, sizes[p]), "gradient",
                             ReduceOp::sum);
        }
      }
      return ::testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(GetParam()), 0));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RankOrder, testing::Values(1, 2, 3, 5));

// The values of the checks do notice another order: the ring's differs.
TEST(RankOrderChecks, NoticeAnotherOrder) {
  run_ranks(3, {}, [](Communicator& comm) {
    std::vector<float> data(1000);
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = ordered_input<float>(ReduceOp::sum, comm.rank(), i);
    }
    comm.all_reduce(data, ReduceOp::sum, {.algorithm = Algorithm::ring});
    EXPECT_NE(data, ordered_result<float>(ReduceOp::sum, 3, data.size()));
  });
}

TEST(RankOrderOption, NamesTheAlgorithmThatKeepsIt) {
  const auto call_of = [](std::size_t count, DataType type, ReduceOp op) {
    static float any = 0;
    return Call{.collective = Collective::all_reduce,
                .in = &any,
                .out = &any,
                .count = count,
                .type = type,
                .op = op};
  };
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    Communicator comm = from_socket(me.socket, me.rank, me.size, {.rank_order = true});
    Communicator other = from_socket(me.socket + "2", me.rank, me.size);
    const auto named = [&](const Communicator& by, const Call& call, Algorithm algorithm) {
      EXPECT_EQ(by.algorithm_for(call), algorithm);
    };
    named(comm, call_of(1'000'000, DataType::f32, ReduceOp::sum), Algorithm::hierarchical);
    named(comm, call_of(1'000'000, DataType::f32, ReduceOp::min), Algorithm::hierarchical);
    Call to_one = call_of(1'000'000, DataType::f32, ReduceOp::sum);
    to_one.collective = Collective::reduce;
    named(comm, to_one, Algorithm::chain);
    named(comm, call_of(1'000'000, DataType::i32, ReduceOp::sum), Algorithm::hierarchical);
    named(comm, call_of(10, DataType::f32, ReduceOp::sum), Algorithm::one_shot);
    named(other, call_of(1'000'000, DataType::f32, ReduceOp::sum), Algorithm::hierarchical);
    other.barrier();  // all have joined before one ends
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

TEST(RankOrderOption, ThatDiffersBetweenRanksIsAnErrorOfAll) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    try {
      static_cast<void>(from_socket(me.socket, me.rank, me.size, {.rank_order = me.rank == 1}));
    } catch (const UsageError& error) {
      return std::string(error.what()).find("rank_order false and true") != std::string::npos ? 0
                                                                                              : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace rondo::test

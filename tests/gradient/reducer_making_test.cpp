// The arguments of a reducer are compared between all ranks; wrong ones are refused on all ranks.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "tests/gradient/reducer_checks.hpp"
#include "tests/support/forked.hpp"

namespace rondo::test {
namespace {

class MakingAReducer : public Gradients {};

// The call that sums up a bucket in place.
Call sum_of(const GradientBucket& bucket) {
  return {.collective = Collective::all_reduce,
          .in = bucket.data,
          .out = bucket.data,
          .count = bucket.count,
          .type = bucket.type};
}

// Buckets of the first layout would fit one_shot's outboxes; those of a layout in order of arrival
// may not.
TEST(GradientsByOneShot, AreRefusedWhereABucketMayOutgrowIt) {
  run_ranks(2, {}, [](Communicator& comm) {
    ToyModel<float> model({10'000, 10'000, 10'000, 10'000});
    GradientOptions options = small_buckets();
    options.algorithm = Algorithm::one_shot;
    options.bucket_bytes = 80'000;
    options.first_bucket_bytes = 40'000;
    const auto make = [&] { const GradientReducer reducer(comm, model.parameters(), options); };
    const std::string text = usage_error(make);
    expect_in("one_shot carries vectors of up to 65536 bytes", text);
    expect_in("buckets of up to 80000 bytes", text);
    options.bucket_bytes = 40'000;
    GradientReducer reducer(comm, model.parameters(), options);
    for (int iteration = 0; iteration < 3; ++iteration) {
      for (std::size_t i = 0; i < model.size(); ++i) {
        model.compute(comm.rank(), i);
        reducer.mark_ready(i);
      }
      reducer.finish();
      expect_all(model, comm.size());
    }
  });
}

// All that a reducer of processes sends lies in memory that the other ranks reach, but for
// gradients that are side by side in the caller's own memory.
TEST(MemoryOfAReducer, IsReachedByTheOtherProcesses) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = from_socket(me.socket, me.rank, me.size);
    ToyModel<float> model({3000, 3000, 3000});
    std::vector<Parameter> parameters = model.parameters();
    // Each rank owns another one of them.
    parameters.push_back(Parameter::owned_gradient_only<float>("owned", 5000));
    parameters[static_cast<std::size_t>(me.rank)].gradient = nullptr;
    GradientOptions options;
    options.bucket_bytes = options.first_bucket_bytes = 30'000;
    std::size_t unreachable = 0;
    options.hook = [&](Communicator& ranks, const GradientBucket& bucket) {
      const Call call = sum_of(bucket);
      if (ranks.algorithm_for(call) != Algorithm::direct) ++unreachable;
      ranks.run(call);
    };
    GradientReducer reducer(comm, parameters, options);
    for (int iteration = 0; iteration < 3; ++iteration) {
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const std::span<float> gradient = reducer.gradient<float>(i);
        for (std::size_t e = 0; e < gradient.size(); ++e) {
          gradient[e] = static_cast<float>(gradient_value(me.rank, i, e));
        }
        reducer.mark_ready(i);
      }
      reducer.finish();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        expect_sums<float>(reducer.gradient<float>(i), me.size, i, 1.0 / me.size);
      }
    }
    // Of the three buckets of an iteration, one is a single gradient, which may be in the caller's
    // memory.
    if (::testing::Test::HasFailure()) return 1;
    return unreachable <= 3 ? 0 : 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

// How the buckets of a trainer went that keeps each gradient in a vector of its own.
struct BucketsOfVectors {
  int buckets = 0;
  int direct = 0;    // went by `direct`
  int in_place = 0;  // were the gradients themselves
};

template <class Vector, class... Args>
BucketsOfVectors reduce_vectors(Communicator& comm, std::size_t bucket_bytes, Args... args) {
  constexpr std::size_t kElems = 20'000;
  std::vector<Vector> gradients;
  std::vector<std::vector<float>> values(4, std::vector<float>(kElems, 1.0F));
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < values.size(); ++i) gradients.emplace_back(kElems, args...);
  for (std::size_t i = 0; i < values.size(); ++i) {
    parameters.push_back({"w" + std::to_string(i), gradients[i], values[i]});
  }
  GradientOptions options;
  options.bucket_bytes = options.first_bucket_bytes = bucket_bytes;
  BucketsOfVectors found;
  options.hook = [&](Communicator& ranks, const GradientBucket& bucket) {
    const Call call = sum_of(bucket);
    ++found.buckets;
    found.direct += ranks.algorithm_for(call) == Algorithm::direct ? 1 : 0;
    for (const Vector& gradient : gradients) {
      found.in_place += call.out == gradient.data() ? 1 : 0;
    }
    ranks.run(call);
  };
  GradientReducer reducer(comm, parameters, options);
  for (std::size_t i = values.size(); i-- > 0;) {
    for (std::size_t e = 0; e < kElems; ++e) {
      gradients[i][e] = static_cast<float>(gradient_value(comm.rank(), i, e));
    }
    reducer.mark_ready(i);
  }
  reducer.finish();
  for (std::size_t i = 0; i < values.size(); ++i) {
    expect_sums<float>(gradients[i], comm.size(), i, 1.0 / comm.size());
  }
  return found;
}

// A trainer that replaces std::vector by std::pmr::vector, and changes nothing else. Of buckets of
// one gradient each none is copied, so it is the trainer's own memory that decides.
TEST(MemoryOfAReducer, IsReachedInATrainerThatChangesItsVectorsOnly) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = from_socket(me.socket, me.rank, me.size);
    using Reachable = std::pmr::vector<float>;
    const auto one = reduce_vectors<Reachable>(comm, 80'000, &reachable_memory());
    if (one.buckets != 4 || one.direct != 4 || one.in_place != 4) return 2;
    const auto ordinary = reduce_vectors<std::vector<float>>(comm, 80'000);
    if (ordinary.buckets != 4 || ordinary.direct != 0 || ordinary.in_place != 4) return 3;
    const auto two = reduce_vectors<Reachable>(comm, 160'000, &reachable_memory());
    if (two.buckets != 2 || two.direct != 2) return 4;
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

// One element differs in its sign alone, at a place where two elements share a word of the hash or
// are its last.
TEST_P(MakingAReducer, ComparesValuesThatItMayNotWrite) {
  on_ranks([](Communicator& comm) {
    std::vector<float> gradient(20'001);
    for (const std::size_t odd : {0U, 1U, 777U, 20'000U}) {
      std::vector<float> values(20'001, 3.0F);
      const std::vector<float>& compared = values;
      {
        const GradientReducer reducer(comm, {{"w", gradient, compared}});
      }
      if (comm.rank() == comm.size() - 1) values[odd] = -3.0F;
      const auto make = [&] {
        const GradientReducer reducer(comm, {Parameter::owned("v", compared)});
      };
      if (comm.size() == 1) {
        make();
        continue;
      }
      expect_in("parameter 0 'v' of 20001 f32, with values to compare", usage_error(make));
      ASSERT_EQ(values[odd], comm.rank() == comm.size() - 1 ? -3.0F : 3.0F);
    }
  });
}

TEST(MemoryOfAReducer, ThatOthersCannotReachIsAnErrorOfAllWhereDirectIsNamed) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm = from_socket(me.socket, me.rank, me.size);
    std::vector<float> gradient(1000);
    const auto parameter = [&](bool owned) {
      return owned ? Parameter::owned_gradient_only<float>("p", gradient.size())
                   : Parameter::gradient_only("p", gradient);
    };
    GradientOptions options;
    options.bucket_bytes = 100'000;
    options.algorithm = Algorithm::direct;
    const std::string text = usage_error(
        [&] { const GradientReducer reducer(comm, {parameter(me.rank == 0)}, options); });
    expect_in("rank 1", text);
    expect_in("Parameter::owned", text);
    const GradientReducer reducer(comm, {parameter(true)}, options);
    options.algorithm = Algorithm::automatic;
    GradientReducer other(comm, {parameter(false)}, options);
    gradient[7] = 3.0F;
    other.mark_ready(0);
    other.finish();
    EXPECT_EQ(gradient[7], 3.0F);
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST_P(MakingAReducer, OnACoreThatOneRankDoesNotHaveAreAnErrorOfAll) {
  on_ranks([](Communicator& comm) {
    ToyModel<float> model;
    GradientOptions options = small_buckets();
    if (comm.rank() == comm.size() - 1) options.progress_core = 100'000;
    const std::string text =
        usage_error([&] { const GradientReducer reducer(comm, model.parameters(), options); });
    expect_in(fmt::format("rank {}: its thread for communication cannot be bound to hardware "
                          "thread 100000",
                          comm.size() - 1),
              text);
    options.progress_core.reset();
    GradientReducer reducer(comm, model.parameters(), options);
    backward(reducer, model, comm.rank());
    reducer.finish();
    expect_all(model, comm.size());
  });
}

TEST_P(MakingAReducer, MadeOfDifferentPartsNameTheFirst) {
  if (ranks() == 1) return;
  on_ranks([](Communicator& comm) {
    const bool last = comm.rank() == comm.size() - 1;
    const auto error_of = [&](std::vector<Parameter> parameters, GradientOptions options) {
      return usage_error(
          [&] { const GradientReducer reducer(comm, std::move(parameters), std::move(options)); });
    };
    const std::string ranks_named = fmt::format("rank {} has ", comm.size() - 1);
    ToyModel<float> same;
    ToyModel<float> other({30, 1, 701});
    std::string text = error_of(last ? other.parameters() : same.parameters(), small_buckets());
    expect_in("rank 0 has parameter 2 'p2' of 700 f32", text);
    expect_in(ranks_named + "parameter 2 'p2' of 701 f32", text);

    ToyModel<double> wide;
    text = error_of(last ? wide.parameters() : same.parameters(), small_buckets());
    expect_in(ranks_named + "parameter 0 'p0' of 30 f64", text);

    ToyModel<float> fewer({30, 1});
    text = error_of(last ? fewer.parameters() : same.parameters(), small_buckets());
    expect_in(ranks_named + "no more parameters", text);

    text = error_of(same.parameters(), small_buckets(last ? Average::sum : Average::ranks));
    expect_in("average = ranks", text);
    expect_in(ranks_named + "GradientOptions::average = sum", text);

    // The communicator still works.
    std::vector<float> one = {1};
    comm.all_reduce(one);
    EXPECT_EQ(one[0], static_cast<float>(comm.size()));
  });
}

TEST_P(MakingAReducer, MadeWronglyOnOneRankAreAnErrorOfAll) {
  on_ranks([](Communicator& comm) {
    const bool last = comm.rank() == comm.size() - 1;
    std::vector<float> memory(100);
    std::vector<std::int32_t> whole(100);
    const std::span<float> all(memory);
    const auto error_of = [&](std::vector<Parameter> parameters, GradientOptions options = {}) {
      return usage_error(
          [&] { const GradientReducer reducer(comm, std::move(parameters), std::move(options)); });
    };
    std::string text =
        error_of({Parameter::gradient_only("a", all.first(60)),
                  Parameter::gradient_only("b", last ? all.last(60) : all.last(40))});
    expect_in("parameters 0 ('a') and 1 ('b') overlap", text);
    expect_in(fmt::format("rank {}", comm.size() - 1), text);
    expect_in("there are no parameters", error_of({}));
    expect_in("('n') is of type i32", error_of({Parameter::gradient_only("n", whole)}));
    expect_in("has 50 values and a gradient of 40", error_of({{"a", all.first(40), all.last(50)}}));
    GradientOptions both;
    both.wire = WireType::bf16;
    both.hook = [](Communicator&, const GradientBucket&) {};
    expect_in("hook", error_of({Parameter::gradient_only("a", all)}, both));
    GradientOptions late;
    late.timeout = std::chrono::milliseconds(last ? 0 : 1000);
    expect_in("timeout is 0 ms", error_of({Parameter::gradient_only("a", all)}, late));
    GradientOptions odd;
    odd.average = static_cast<Average>(7);
    expect_in("is not an Average", error_of({Parameter::gradient_only("a", all)}, odd));
    GradientOptions impossible;
    impossible.bucket_bytes = 1_KiB;
    impossible.algorithm = Algorithm::recursive_doubling;
    if (comm.size() > 1)
      expect_in("recursive_doubling", error_of({Parameter::gradient_only("a", all)}, impossible));
    GradientOptions nowhere;
    nowhere.progress_core = 100'000;
    nowhere.bucket_bytes = 1_KiB;
    if (comm.size() == 1)
      expect_in("hardware thread 100000", error_of({Parameter::gradient_only("a", all)}, nowhere));
  });
}

// Bucket sizes from what the ranks measure: whatever comes out, all ranks have the same.
TEST_P(MakingAReducer, ChooseTheirBucketSize) {
  on_ranks([](Communicator& comm) {
    ToyModel<float> model;
    GradientReducer reducer(comm, model.parameters());
    std::vector<std::uint64_t> sizes(static_cast<std::size_t>(comm.size()));
    const std::uint64_t mine = reducer.bucket_bytes();
    comm.all_gather(std::span(&mine, 1), sizes);
    for (const std::uint64_t size : sizes) EXPECT_EQ(size, mine);
    EXPECT_GE(mine, 8_KiB);
    EXPECT_FALSE(reducer.progress_place().empty());
    backward(reducer, model, comm.rank());
    reducer.finish();
    expect_all(model, comm.size(), 1.0 / comm.size());
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, MakingAReducer, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace rondo::test

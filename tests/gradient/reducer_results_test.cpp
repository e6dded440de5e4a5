// The results that a reducer computes from the gradients of all ranks.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "tests/gradient/reducer_checks.hpp"
#include "tests/support/large_values.hpp"

namespace rondo::test {
namespace {

class GradientResults : public Gradients {};

template <class T>
void check_type(int ranks, Average average, double factor) {
  run_ranks(ranks, {}, [&](Communicator& comm) {
    ToyModel<T> model;
    GradientReducer reducer(comm, model.parameters(), small_buckets(average));
    for (int iteration = 0; iteration < 3; ++iteration) {
      backward(reducer, model, comm.rank());
      reducer.finish();
      expect_all(model, comm.size(), factor);
    }
  });
}

TEST_P(GradientResults, SumsOfEveryType) {
  check_type<float>(ranks(), Average::sum, 1);
  check_type<double>(ranks(), Average::sum, 1);
  check_type<Float16>(ranks(), Average::sum, 1);
  check_type<BFloat16>(ranks(), Average::sum, 1);
}

TEST_P(GradientResults, MeansOverRanks) {
  check_type<float>(ranks(), Average::ranks, 1.0 / ranks());
  check_type<double>(ranks(), Average::ranks, 1.0 / ranks());
  check_type<BFloat16>(ranks(), Average::ranks, 1.0 / ranks());
}

// Of gradients whose sum the type does not hold, in buckets of a few bytes and in one of many.
template <class T>
void check_large_means(Communicator& comm) {
  for (const std::size_t count : {10U, 2000U, 40'000U}) {
    std::vector<T> gradient(count);
    GradientReducer reducer(comm, {Parameter::gradient_only("a", gradient)},
                            small_buckets(Average::ranks));
    for (std::size_t i = 0; i < count; ++i) gradient[i] = large_value<T>(i, comm.rank());
    reducer.mark_ready(0);
    reducer.finish();
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(gradient[i].bits, large_value<T>(i, (comm.size() - 1) / 2.0).bits)
          << name(kDataTypeOf<T>) << ", element " << i << " of " << count;
    }
  }
}

TEST_P(GradientResults, MeansOfLarge16BitValuesDoNotOverflow) {
  on_ranks([](Communicator& comm) {
    check_large_means<Float16>(comm);
    check_large_means<BFloat16>(comm);
  });
}

TEST_P(GradientResults, WithoutOverlapTheBitsAreTheSame) {
  on_ranks([](Communicator& comm) {
    for (const bool overlap : {true, false}) {
      ToyModel<float> model;
      GradientOptions options = small_buckets(Average::ranks);
      options.overlap = overlap;
      GradientReducer reducer(comm, model.parameters(), options);
      backward(reducer, model, comm.rank());
      reducer.finish();
      expect_all(model, comm.size(), 1.0 / comm.size());
    }
  });
}

// A bucket holds one type only, and every bucket size gives the same sums.
TEST_P(GradientResults, OfMixedTypesInBucketsOfAnySize) {
  on_ranks([](Communicator& comm) {
    for (const std::size_t cap : {1U, 100U, 1024U, 65'536U, 1U << 24U}) {
      ToyModel<float> singles;
      ToyModel<double> doubles;
      std::vector<Parameter> parameters = singles.parameters();
      for (Parameter& parameter : doubles.parameters()) parameters.push_back(parameter);
      GradientOptions options = small_buckets();
      options.bucket_bytes = cap;
      GradientReducer reducer(comm, parameters, options);
      for (int iteration = 0; iteration < 2; ++iteration) {
        for (std::size_t i = 0; i < singles.size(); ++i) {
          singles.compute(comm.rank(), i);
          doubles.compute(comm.rank(), i);
          reducer.mark_ready(singles.size() + i);
          reducer.mark_ready(i);
        }
        reducer.finish();
        expect_all(singles, comm.size());
        expect_all(doubles, comm.size());
      }
      if (cap == 1) {
        EXPECT_EQ(reducer.buckets().size(), parameters.size() - 2) << "empty ones share";
      }
    }
  });
}

// Several threads mark in an order of their own, different on each rank and in each iteration.
TEST_P(GradientResults, InAnyOrderFromSeveralThreads) {
  on_ranks([](Communicator& comm) {
    ToyModel<float> model(std::vector<std::size_t>(48, 333));
    GradientReducer reducer(comm, model.parameters(), small_buckets());
    std::mt19937 random(static_cast<unsigned>(comm.rank()));
    std::vector<std::size_t> order(model.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int iteration = 0; iteration < 20; ++iteration) {
      std::shuffle(order.begin(), order.end(), random);
      std::atomic<std::size_t> next = 0;
      std::vector<std::thread> threads;
      for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&] {
          for (std::size_t at = next++; at < order.size(); at = next++) {
            model.compute(comm.rank(), order[at], iteration + 1);
            reducer.mark_ready(order[at]);
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      reducer.finish();
      expect_all(model, comm.size(), iteration + 1);
    }
  });
}

TEST_P(GradientResults, TravelNarrowAndComeBackWide) {
  on_ranks([](Communicator& comm) {
    for (const WireType wire : {WireType::bf16, WireType::f16}) {
      for (const Average average : {Average::sum, Average::ranks}) {
        if (average == Average::ranks && comm.size() == 3) continue;  // thirds are not exact
        ToyModel<float> model;
        GradientOptions options = small_buckets(average);
        options.wire = wire;
        GradientReducer reducer(comm, model.parameters(), options);
        backward(reducer, model, comm.rank());
        reducer.finish();
        expect_all(model, comm.size(), average == Average::sum ? 1 : 1.0 / comm.size());
        const std::size_t elements =
            std::accumulate(kToySizes.begin(), kToySizes.end(), std::size_t{0});
        EXPECT_EQ(reducer.statistics().bytes, 2 * elements);
      }
    }
  });
}

// The largest f16 is 65504: the sum of two gradients of 40000 would overflow if they were not
// scaled first.
TEST(GradientsOnTheWire, AverageBeforeTheyAddUp) {
  run_ranks(2, {}, [](Communicator& comm) {
    std::vector<float> gradient(100, 40'000);
    GradientOptions options;
    options.bucket_bytes = 1_KiB;
    options.wire = WireType::f16;
    GradientReducer reducer(comm, {Parameter::gradient_only("w", gradient)}, options);
    reducer.mark_ready(0);
    reducer.finish();
    for (const float value : gradient) ASSERT_EQ(value, 40'000);
  });
}

TEST_P(GradientResults, GoThroughAHook) {
  on_ranks([](Communicator& comm) {
    ToyModel<float> model;
    std::vector<std::size_t> seen;
    GradientOptions options = small_buckets();
    options.order_by_arrival = false;
    options.hook = [&](Communicator& ranks, const GradientBucket& bucket) {
      seen.push_back(bucket.index);
      ranks.all_reduce(bucket.as<float>());
      for (float& value : bucket.as<float>()) value *= 2;
    };
    GradientReducer reducer(comm, model.parameters(), options);
    backward(reducer, model, comm.rank());
    reducer.finish();
    expect_all(model, comm.size(), 2);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_GE(seen.size(), 4U);
  });
}

// Gradients that are adjacent in memory, as the reducer's own are, are sent from where they are,
// without a copy.
TEST_P(GradientResults, OfTheReducersOwnAreNotCopied) {
  on_ranks([](Communicator& comm) {
    std::vector<Parameter> parameters;
    for (std::size_t i = 0; i < kToySizes.size(); ++i) {
      parameters.push_back(
          Parameter::owned_gradient_only<float>(ToyModel<float>::label(i), kToySizes[i]));
    }
    GradientReducer reducer(comm, parameters, small_buckets());
    // From the first on, so that buckets are formed anew, and the memory moves once.
    for (int iteration = 0; iteration < 3; ++iteration) {
      EXPECT_EQ(reducer.layout(), iteration == 0 ? 0 : 1);
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const std::span<float> gradient = reducer.gradient<float>(i);
        for (std::size_t e = 0; e < gradient.size(); ++e) {
          gradient[e] = static_cast<float>(gradient_value(comm.rank(), i, e));
        }
        reducer.mark_ready(i, gradient);
      }
      reducer.finish();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        expect_sums<float>(reducer.gradient<float>(i), comm.size(), i);
      }
    }
    for (const std::vector<std::size_t>& bucket : reducer.buckets()) {
      for (std::size_t m = 1; m < bucket.size(); ++m) {
        const auto before = reducer.gradient<float>(bucket[m - 1]);
        if (before.empty() || reducer.count(bucket[m]) == 0) continue;
        EXPECT_EQ(before.data() + before.size(), reducer.gradient<float>(bucket[m]).data());
      }
    }
    EXPECT_THROW((void)reducer.gradient<double>(0), UsageError);
    EXPECT_THROW((void)reducer.gradient<float>(99), UsageError);
  });
}

// From the second iteration on, buckets follow the order of marks on rank 0, whatever the order on
// other ranks.
TEST_P(GradientResults, FollowTheOrderInWhichTheyComeOnRankZero) {
  on_ranks([](Communicator& comm) {
    ToyModel<float> model({100, 100, 100, 100});
    GradientOptions options = small_buckets();
    options.bucket_bytes = 800;
    options.first_bucket_bytes = 800;
    GradientReducer reducer(comm, model.parameters(), options);
    using Groups = std::vector<std::vector<std::size_t>>;
    EXPECT_EQ(reducer.buckets(), (Groups{{2, 3}, {0, 1}}));
    const std::vector<std::size_t> order = comm.rank() == 0 ? std::vector<std::size_t>{1, 3, 0, 2}
                                                            : std::vector<std::size_t>{2, 0, 1, 3};
    for (int iteration = 0; iteration < 2; ++iteration) {
      for (const std::size_t i : order) {
        model.compute(comm.rank(), i);
        reducer.mark_ready(i);
      }
      reducer.finish();
      expect_all(model, comm.size());
      EXPECT_EQ(reducer.statistics().reordered, iteration == 0);
      EXPECT_TRUE(std::equal(order.begin(), order.end(), reducer.statistics().arrival.begin(),
                             reducer.statistics().arrival.end()));
      EXPECT_EQ(reducer.buckets(), (Groups{{1, 3}, {0, 2}}));
    }
  });
}

class WireGradients : public testing::TestWithParam<std::tuple<int, WireType>> {};

TEST_P(WireGradients, HaveTheSameBitsInBucketsOfAnySizeWhenAsked) {
  const auto [ranks, wire_type] = GetParam();
  const WireType wire = wire_type;
  run_ranks(ranks, {}, [wire](Communicator& comm) {
    std::vector<std::vector<float>> first;
    for (const std::size_t cap : {1U, 3000U, 40'000U, 1U << 24U}) {
      ToyModel<float> model({30, 64, 64, 700, 50, 20'000, 128, 0, 1280, 10, 64});
      GradientOptions options = small_buckets(Average::ranks);
      options.bucket_bytes = cap;
      options.layout_independent = true;
      options.wire = wire;
      GradientReducer reducer(comm, model.parameters(), options);
      std::vector<std::vector<float>> results;
      for (int iteration = 0; iteration < 2; ++iteration) {
        for (std::size_t i = 0; i < model.size(); ++i) {
          std::mt19937 random(
              static_cast<unsigned>(i * 10 + static_cast<std::size_t>(comm.rank())));
          std::uniform_real_distribution<float> any(-1, 1);
          for (float& value : model[i]) value = any(random);  // sums of these depend on the order
          reducer.mark_ready(i);
        }
        reducer.finish();
        results.clear();
        for (std::size_t i = 0; i < model.size(); ++i) {
          results.emplace_back(model[i].begin(), model[i].end());
        }
        if (first.empty()) first = results;
        EXPECT_EQ(results, first) << cap;
      }
    }
  });
}

TEST_P(GradientResults, ThatNobodyMarkedAreZerosWhenAllowed) {
  on_ranks([](Communicator& comm) {
    ToyModel<float> model;
    GradientOptions options = small_buckets();
    options.allow_unused = true;
    GradientReducer reducer(comm, model.parameters(), options);
    for (int iteration = 0; iteration < 2; ++iteration) {
      for (std::size_t i = 0; i < model.size(); ++i) {
        model.compute(comm.rank(), i);
        // No rank marks parameter 3; only rank 0 marks parameter 4.
        if (i == 3 || (i == 4 && comm.rank() != 0)) continue;
        reducer.mark_ready(i);
      }
      reducer.finish();
      for (const float value : model[3]) ASSERT_EQ(value, 0);
      for (std::size_t e = 0; e < model[4].size(); ++e) {
        ASSERT_EQ(model[4][e], static_cast<float>(gradient_value(0, 4, e)));
      }
      expect_sums<float>(model[8], comm.size(), 8);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, WireGradients,
                         testing::Combine(testing::Values(1, 2, 3, 4),
                                          testing::Values(WireType::exact, WireType::bf16,
                                                          WireType::f16)));
INSTANTIATE_TEST_SUITE_P(Ranks, GradientResults, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace rondo::test

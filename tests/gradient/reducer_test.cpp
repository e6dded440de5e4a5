#include <algorithm>
#include <atomic>
#include <fstream>
#include <future>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <thread>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <rondo/rondo.hpp>

#include "tests/gradient/toy_model.hpp"
#include "tests/support/count_allocations.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace rondo::test {
namespace {

GradientOptions small_buckets(Average average = Average::sum) {
  GradientOptions options;
  options.bucket_bytes = 2_KiB;
  options.average = average;
  return options;
}

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

class Gradients : public testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static int ranks() { return GetParam(); }
  static void on_ranks(const std::function<void(Communicator&)>& body) {
    run_ranks(ranks(), {}, body);
  }
};

template <class T>
void backward(GradientReducer& reducer, ToyModel<T>& model, int rank, double factor = 1) {
  for (std::size_t i = model.size(); i-- > 0;) {
    model.compute(rank, i, factor);
    reducer.mark_ready(i, model[i]);
  }
}

template <class T>
void expect_all(ToyModel<T>& model, int ranks, double factor = 1) {
  for (std::size_t i = 0; i < model.size(); ++i) {
    expect_sums<T>(std::span<const T>(model[i]), ranks, i, factor);
  }
}

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

TEST_P(Gradients, SumsOfEveryType) {
  check_type<float>(ranks(), Average::sum, 1);
  check_type<double>(ranks(), Average::sum, 1);
  check_type<Float16>(ranks(), Average::sum, 1);
  check_type<BFloat16>(ranks(), Average::sum, 1);
}

TEST_P(Gradients, MeansOverRanks) {
  check_type<float>(ranks(), Average::ranks, 1.0 / ranks());
  check_type<double>(ranks(), Average::ranks, 1.0 / ranks());
  check_type<BFloat16>(ranks(), Average::ranks, 1.0 / ranks());
}

TEST_P(Gradients, WithoutOverlapTheBitsAreTheSame) {
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

// Types stay apart, and each of many caps gives the same sums.
TEST_P(Gradients, OfMixedTypesInBucketsOfAnySize) {
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
TEST_P(Gradients, InAnyOrderFromSeveralThreads) {
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

// Each rank has other samples and another number of them; together as one rank with all.
TEST_P(Gradients, OfUnevenSharesAsOneRankWithAllSamples) {
  constexpr std::size_t kSize = 3000;
  const auto of_sample = [](std::size_t sample, std::size_t e) {
    return static_cast<double>((sample * 31 + e * 5) % 64);
  };
  for (const LocalGradient local :
       {LocalGradient::sum_of_samples, LocalGradient::mean_of_samples}) {
    on_ranks([&](Communicator& comm) {
      // Powers of two where a rank divides, so that means are exact; their totals are powers too.
      const std::vector<std::size_t> shares = local == LocalGradient::sum_of_samples
                                                  ? std::vector<std::size_t>{1, 3, 0, 12}
                                                  : std::vector<std::size_t>{2, 2, 0, 4};
      const auto rank = static_cast<std::size_t>(comm.rank());
      const std::size_t first =
          std::accumulate(shares.begin(), shares.begin() + comm.rank(), std::size_t{0});
      const std::size_t all =
          std::accumulate(shares.begin(), shares.begin() + comm.size(), std::size_t{0});
      std::vector<float> gradient(kSize);
      GradientOptions options = small_buckets(Average::samples);
      options.local = local;
      GradientReducer reducer(comm, {{"w", gradient}}, options);
      for (int iteration = 0; iteration < 2; ++iteration) {
        for (std::size_t e = 0; e < kSize; ++e) {
          double sum = 0;
          for (std::size_t s = first; s < first + shares[rank]; ++s) sum += of_sample(s, e);
          const bool mean = local == LocalGradient::mean_of_samples && shares[rank] > 0;
          gradient[e] = static_cast<float>(mean ? sum / static_cast<double>(shares[rank]) : sum);
        }
        reducer.set_samples(shares[rank]);
        reducer.mark_ready(0);
        reducer.finish();
        for (std::size_t e = 0; e < kSize; ++e) {
          double sum = 0;
          for (std::size_t s = 0; s < all; ++s) sum += of_sample(s, e);
          ASSERT_EQ(gradient[e], static_cast<float>(sum / static_cast<double>(all))) << e;
        }
      }
    });
  }
}

// A mean over no samples is no number; it counts for nothing.
TEST_P(Gradients, OfARankWithoutSamplesCountForNothing) {
  for (const LocalGradient local :
       {LocalGradient::mean_of_samples, LocalGradient::sum_of_samples}) {
    on_ranks([local](Communicator& comm) {
      std::vector<float> gradient(1000);
      GradientOptions options = small_buckets(Average::samples);
      options.local = local;
      GradientReducer reducer(comm, {{"w", gradient}}, options);
      for (const bool any : {true, false}) {
        const bool has = any && comm.rank() == comm.size() - 1;
        const float mine = local == LocalGradient::mean_of_samples ? 3 : 15;
        std::fill(gradient.begin(), gradient.end(),
                  has ? mine : std::numeric_limits<float>::quiet_NaN());
        reducer.set_samples(has ? 5 : 0);
        reducer.mark_ready(0);
        reducer.finish();
        for (const float value : gradient) ASSERT_EQ(value, any ? 3 : 0);
      }
    });
  }
}

// Marks that come too late, or under no_sync, are told at the end of the next iteration.
TEST_P(Gradients, MarkedWronglyBetweenIterationsAreToldInTheNext) {
  on_ranks([](Communicator& comm) {
    const bool last = comm.rank() == comm.size() - 1;
    std::vector<float> gradient(64);
    std::vector<float> other(64);
    GradientReducer reducer(comm, {{"w", gradient}}, small_buckets());
    for (const bool known : {true, false}) {
      if (last) {
        const auto alone = reducer.no_sync();
        if (known) {
          EXPECT_THROW(reducer.mark_ready(0, other), UsageError);
        } else {
          EXPECT_THROW(reducer.mark_ready(9), UsageError);
        }
      }
      reducer.mark_ready(0);
      const std::string text = usage_error([&] { reducer.finish(); });
      expect_in(known ? "parameter 0 ('w') came with another address" : "no parameter 9", text);
      reducer.mark_ready(0);
      reducer.finish();
    }
  });
}

// What goes wrong on the others while a rank follows them is theirs.
TEST_P(Gradients, OfRanksThatHaveJoinedPassOverErrors) {
  if (ranks() == 1) return;
  on_ranks([](Communicator& comm) {
    std::vector<float> gradient(64);
    GradientReducer reducer(comm, {{"w", gradient}}, small_buckets());
    int steps = 0;
    if (comm.rank() > 0) {
      reducer.join([&] { ++steps; });
      EXPECT_EQ(steps, 1);
      return;
    }
    EXPECT_THROW(reducer.finish(), UsageError);
    reducer.mark_ready(0);
    reducer.finish();
    reducer.join();
  });
}

TEST_P(Gradients, TravelNarrowAndComeBackWide) {
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

// f16 ends at 65504, and so would the sum of two gradients of 40000.
TEST(GradientsOnTheWire, AverageBeforeTheyAddUp) {
  run_ranks(2, {}, [](Communicator& comm) {
    std::vector<float> gradient(100, 40'000);
    GradientOptions options;
    options.bucket_bytes = 1_KiB;
    options.wire = WireType::f16;
    GradientReducer reducer(comm, {{"w", gradient}}, options);
    reducer.mark_ready(0);
    reducer.finish();
    for (const float value : gradient) ASSERT_EQ(value, 40'000);
  });
}

TEST_P(Gradients, GoThroughAHook) {
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

TEST(GradientsThroughAHook, ThatThrowsEndForAll) {
  run_ranks(2, {}, [](Communicator& comm) {
    std::vector<float> gradient(100);
    GradientOptions options = small_buckets();
    options.hook = [&](Communicator& ranks, const GradientBucket& bucket) {
      if (ranks.rank() == 1) throw std::runtime_error("no more disk");
      ranks.all_reduce(bucket.as<float>());
    };
    GradientReducer reducer(comm, {{"w", gradient}}, options);
    reducer.mark_ready(0);
    try {
      reducer.finish();
      FAIL() << "finish() returned";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("no more disk"), std::string::npos) << error.what();
    }
    EXPECT_THROW(reducer.mark_ready(0), std::runtime_error);
  });
}

// Neighbours in memory, and gradients of the reducer's own, travel from where they are.
TEST_P(Gradients, OfTheReducersOwnAreNotCopied) {
  on_ranks([](Communicator& comm) {
    std::vector<Parameter> parameters;
    for (std::size_t i = 0; i < kToySizes.size(); ++i) {
      parameters.push_back(Parameter::owned<float>(ToyModel<float>::label(i), kToySizes[i]));
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

// Rank 0's order, from the second iteration on, whatever the others' is.
TEST_P(Gradients, FollowTheOrderInWhichTheyComeOnRankZero) {
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

TEST_P(Gradients, OfPassesWithoutSyncStayWhatTheyAre) {
  on_ranks([](Communicator& comm) {
    ToyModel<float> model;
    GradientReducer reducer(comm, model.parameters(), small_buckets());
    for (int iteration = 0; iteration < 2; ++iteration) {
      {
        const auto alone = reducer.no_sync();
        for (int pass = 0; pass < 2; ++pass) {
          backward(reducer, model, comm.rank());
          reducer.finish();
        }
        for (std::size_t e = 0; e < model[2].size(); ++e) {
          ASSERT_EQ(model[2][e], static_cast<float>(gradient_value(comm.rank(), 2, e)));
        }
      }
      backward(reducer, model, comm.rank(), 3);
      reducer.finish();
      expect_all(model, comm.size(), 3);
    }
    EXPECT_EQ(reducer.statistics().iteration, 2U);
  });
}

// A rank that forgets no_sync is a pass ahead of the others.
TEST_P(Gradients, OfDifferentNumbersOfPassesAreAnErrorOnEveryRank) {
  if (ranks() == 1) return;
  on_ranks([](Communicator& comm) {
    const bool last = comm.rank() == comm.size() - 1;
    for (const bool finishes : {true, false}) {
      for (const Average average : {Average::sum, Average::ranks, Average::samples}) {
        ToyModel<float> model;
        GradientReducer reducer(comm, model.parameters(), small_buckets(average));
        const auto iterate = [&](int passes) {
          {
            const auto alone = reducer.no_sync();
            for (int pass = 0; pass < passes; ++pass) {
              backward(reducer, model, comm.rank());
              if (finishes) reducer.finish();
            }
          }
          if (average == Average::samples) reducer.set_samples(1);
          backward(reducer, model, comm.rank());
          reducer.finish();
        };
        iterate(1);
        if (average == Average::sum) expect_all(model, comm.size());
        if (average == Average::samples) {
          iterate(last ? 0 : 1);
        } else {
          const std::string text = usage_error([&] { iterate(last ? 0 : 1); });
          expect_in(fmt::format("rank {}: finish: it made 0 passes", comm.size() - 1), text);
          expect_in("rank 0 made 1", text);
        }
        iterate(1);
      }
    }
  });
}

// Rank r has r + 1 batches. Those that are through follow the steps of the others.
TEST_P(Gradients, OfRanksThatRunOutOfDataEarly) {
  for (const Average average : {Average::ranks, Average::samples, Average::sum}) {
    for (const bool follow : {true, false}) {
      on_ranks([&](Communicator& comm) {
        std::vector<float> value(64, static_cast<float>(comm.rank()));
        std::vector<float> gradient(64);
        GradientReducer reducer(comm, {{"w", gradient, value}}, small_buckets(average));
        ASSERT_EQ(value[5], 0) << "rank 0's values";
        const auto step = [&] {
          for (std::size_t e = 0; e < value.size(); ++e) value[e] -= gradient[e];
        };
        for (int epoch = 0; epoch < 2; ++epoch) {
          for (int batch = 0; batch <= comm.rank(); ++batch) {
            std::fill(gradient.begin(), gradient.end(), 12);
            if (average == Average::samples) reducer.set_samples(4);
            reducer.mark_ready(0);
            reducer.finish();
            // All that take part have the same gradient, so means are what each has.
            const int live = comm.size() - batch;
            ASSERT_EQ(gradient[7], average == Average::sum ? 12 * live : 12);
            step();
          }
          if (follow) {
            reducer.join(step);
          } else {
            reducer.join();
          }
          const int steps = comm.size() * (epoch + 1);
          const int total = comm.size() * (comm.size() + 1) / 2 * (epoch + 1);
          ASSERT_EQ(value[63],
                    static_cast<float>(average == Average::sum ? -12 * total : -12 * steps));
        }
      });
    }
  }
}

TEST_P(Gradients, ThatNobodyMarkedAreZerosWhenAllowed) {
  on_ranks([](Communicator& comm) {
    ToyModel<float> model;
    GradientOptions options = small_buckets();
    options.allow_unused = true;
    GradientReducer reducer(comm, model.parameters(), options);
    for (int iteration = 0; iteration < 2; ++iteration) {
      for (std::size_t i = 0; i < model.size(); ++i) {
        model.compute(comm.rank(), i);
        // Nobody's 3; rank 0's alone 4.
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

// What `wrong` does on the last rank, all ranks are told with the same words, and the next iteration is well.
void expect_told_by_all(int ranks, const std::vector<std::string>& words,
                        const std::function<void(GradientReducer&, ToyModel<float>&)>& wrong) {
  for (const bool overlap : {true, false}) {
    run_ranks(ranks, {}, [&](Communicator& comm) {
      ToyModel<float> model;
      GradientOptions options = small_buckets();
      options.overlap = overlap;
      GradientReducer reducer(comm, model.parameters(), options);
      for (int iteration = 0; iteration < 2; ++iteration) {
        if (comm.rank() == comm.size() - 1) {
          wrong(reducer, model);
        } else {
          backward(reducer, model, comm.rank());
        }
        const std::string text = usage_error([&] { reducer.finish(); });
        for (const std::string& word : words) expect_in(word, text);
        expect_in(fmt::format("rank {}", comm.size() - 1), text);
        backward(reducer, model, comm.rank());
        reducer.finish();
        expect_all(model, comm.size());
      }
    });
  }
}

TEST_P(Gradients, ThatAreMissingAreNamedOnEveryRank) {
  expect_told_by_all(ranks(), {"finish", "parameter 4 ('p4')", "allow_unused"},
                     [](GradientReducer& reducer, ToyModel<float>& model) {
                       for (std::size_t i = 0; i < model.size(); ++i) {
                         if (i != 4) reducer.mark_ready(i);
                       }
                     });
  expect_told_by_all(ranks(), {"finish", "(and 8 more) was not marked"},
                     [](GradientReducer&, ToyModel<float>&) {});
}

TEST_P(Gradients, MarkedTwiceAreNamedOnEveryRank) {
  expect_told_by_all(ranks(), {"mark_ready", "parameter 2 ('p2')", "before"},
                     [](GradientReducer& reducer, ToyModel<float>& model) {
                       backward(reducer, model, 0);
                       const std::string text = usage_error([&] { reducer.mark_ready(2); });
                       expect_in("parameter 2 ('p2')", text);
                     });
}

TEST_P(Gradients, FromElsewhereAreNamedOnEveryRank) {
  std::vector<float> other(700);
  expect_told_by_all(ranks(), {"mark_ready", "parameter 2 ('p2')", "address"},
                     [&](GradientReducer& reducer, ToyModel<float>&) {
                       expect_in("p2", usage_error([&] { reducer.mark_ready(2, other); }));
                     });
  expect_told_by_all(ranks(), {"mark_ready", "parameter 2 ('p2')", "number of elements"},
                     [](GradientReducer& reducer, ToyModel<float>& model) {
                       expect_in("p2",
                                 usage_error([&] { reducer.mark_ready(2, model[2].first(10)); }));
                     });
  expect_told_by_all(ranks(), {"no parameter 1000"},
                     [](GradientReducer& reducer, ToyModel<float>&) {
                       expect_in("1000", usage_error([&] { reducer.mark_ready(1000); }));
                     });
}

TEST_P(Gradients, WithoutASampleCountAreToldOnEveryRank) {
  on_ranks([](Communicator& comm) {
    ToyModel<float> model;
    GradientReducer reducer(comm, model.parameters(), small_buckets(Average::samples));
    if (comm.rank() != comm.size() - 1) {
      reducer.set_samples(1);
      backward(reducer, model, comm.rank());
      expect_in("in the middle", usage_error([&] { reducer.set_samples(3); }));
    } else {
      expect_in("set_samples", usage_error([&] { reducer.mark_ready(0); }));
    }
    expect_in("set_samples", usage_error([&] { reducer.finish(); }));
    // What was said does not hold for the next iteration.
    expect_in("set_samples", usage_error([&] { reducer.finish(); }));
  });
}

// A rank leaves in the middle with the error in its hands; nobody waits for it, and all read its name.
TEST_P(Gradients, OfARankThatUnwindsEndForAllWithTheName) {
  if (ranks() == 1) return;
  for (int round = 0; round < 200; ++round) {
    std::vector<Communicator> group = local_group(ranks());
    std::vector<std::string> texts(group.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          Communicator comm = std::move(group[rank]);
          ToyModel<float> model;
          GradientReducer reducer(comm, model.parameters(), small_buckets());
          backward(reducer, model, comm.rank());
          if (rank == 0) reducer.mark_ready(5);
          reducer.finish();
        } catch (const Error& error) {
          texts[rank] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : texts) expect_in("parameter 5 ('p5')", text);
  }
}

// The first layout would fit one_shot's boxes; one that follows the arrival may not.
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

TEST_P(Gradients, OnACoreThatOneRankDoesNotHaveAreAnErrorOfAll) {
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

TEST_P(Gradients, MadeOfDifferentPartsNameTheFirst) {
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

    // And the communicator is as good as before.
    std::vector<float> one = {1};
    comm.all_reduce(one);
    EXPECT_EQ(one[0], static_cast<float>(comm.size()));
  });
}

TEST_P(Gradients, MadeWronglyOnOneRankAreAnErrorOfAll) {
  on_ranks([](Communicator& comm) {
    const bool last = comm.rank() == comm.size() - 1;
    std::vector<float> memory(100);
    std::vector<std::int32_t> whole(100);
    const std::span<float> all(memory);
    const auto error_of = [&](std::vector<Parameter> parameters, GradientOptions options = {}) {
      return usage_error(
          [&] { const GradientReducer reducer(comm, std::move(parameters), std::move(options)); });
    };
    std::string text = error_of({{"a", all.first(60)}, {"b", last ? all.last(60) : all.last(40)}});
    expect_in("parameters 0 ('a') and 1 ('b') overlap", text);
    expect_in(fmt::format("rank {}", comm.size() - 1), text);
    expect_in("there are no parameters", error_of({}));
    expect_in("('n') is of type i32", error_of({{"n", whole}}));
    expect_in("has 50 values and a gradient of 40", error_of({{"a", all.first(40), all.last(50)}}));
    GradientOptions both;
    both.wire = WireType::bf16;
    both.hook = [](Communicator&, const GradientBucket&) {};
    expect_in("hook", error_of({{"a", all}}, both));
    GradientOptions late;
    late.timeout = std::chrono::milliseconds(last ? 0 : 1000);
    expect_in("timeout is 0 ms", error_of({{"a", all}}, late));
    GradientOptions odd;
    odd.average = static_cast<Average>(7);
    expect_in("is not an Average", error_of({{"a", all}}, odd));
    GradientOptions impossible;
    impossible.bucket_bytes = 1_KiB;
    impossible.algorithm = Algorithm::recursive_doubling;
    if (comm.size() > 1) expect_in("recursive_doubling", error_of({{"a", all}}, impossible));
    GradientOptions nowhere;
    nowhere.progress_core = 100'000;
    nowhere.bucket_bytes = 1_KiB;
    if (comm.size() == 1) expect_in("hardware thread 100000", error_of({{"a", all}}, nowhere));
  });
}

TEST(GradientsOfAStalledPeer, TimeOut) {
  std::promise<void> gave_up;
  std::shared_future<void> over = gave_up.get_future();
  run_ranks(2, {}, [&](Communicator& comm) {
    ToyModel<float> model;
    GradientOptions options = small_buckets();
    options.timeout = std::chrono::milliseconds(200);
    GradientReducer reducer(comm, model.parameters(), options);
    if (comm.rank() == 0) {
      backward(reducer, model, 0);
      EXPECT_THROW(reducer.finish(), TimeoutError);
      EXPECT_THROW(reducer.finish(), TimeoutError);
      EXPECT_THROW(reducer.mark_ready(0), TimeoutError);
      EXPECT_THROW(reducer.join(), TimeoutError);
      EXPECT_THROW(reducer.set_samples(1), TimeoutError);
      EXPECT_THROW((void)reducer.no_sync(), TimeoutError);
      gave_up.set_value();
    } else {
      over.wait();
      EXPECT_THROW(backward(reducer, model, 1); reducer.finish(), PeerError);
    }
  });
}

TEST(GradientStatistics, SayWhatAnIterationDid) {
  run_ranks(2, {}, [](Communicator& comm) {
    ToyModel<float> model;
    GradientReducer reducer(comm, model.parameters(), small_buckets());
    backward(reducer, model, comm.rank());
    reducer.finish();
    const GradientStatistics& statistics = reducer.statistics();
    EXPECT_EQ(statistics.iteration, 1U);
    EXPECT_EQ(statistics.buckets.size(), reducer.buckets().size());
    EXPECT_EQ(statistics.arrival.size(), model.size());
    EXPECT_EQ(statistics.bytes,
              4 * std::accumulate(kToySizes.begin(), kToySizes.end(), std::size_t{0}));
    double before = 0;
    double transfer_us = 0;
    for (const BucketStatistics& bucket : statistics.buckets) {
      transfer_us += bucket.end_us - bucket.start_us;
      EXPECT_LE(bucket.ready_us, bucket.start_us);
      EXPECT_LE(before, bucket.start_us);
      EXPECT_LE(bucket.start_us, bucket.end_us);
      before = bucket.end_us;
    }
    EXPECT_GT(statistics.buckets.size(), 1U);
    EXPECT_DOUBLE_EQ(statistics.transfer_us, transfer_us);
    EXPECT_GT(statistics.transfer_us, 0);
    EXPECT_GT(statistics.exposed_us, 0);
    EXPECT_GE(statistics.compute_us + statistics.exposed_us, before);
    EXPECT_LE(statistics.hidden_fraction, 1);
  });
}

// Four buckets, then two or eight: what is told of an iteration is told of its own buckets.
TEST(GradientStatistics, FollowBucketsThatAreFormedAnew) {
  run_ranks(2, {}, [](Communicator& comm) {
    for (const bool more : {true, false}) {
      ToyModel<float> model({300, 10, 300, 10, 300, 10});
      GradientOptions options = small_buckets();
      options.bucket_bytes = options.first_bucket_bytes = 1240;
      GradientReducer reducer(comm, model.parameters(), options);
      const std::size_t before = reducer.buckets().size();
      const std::vector<std::size_t> order = more ? std::vector<std::size_t>{1, 3, 5, 0, 2, 4}
                                                  : std::vector<std::size_t>{5, 4, 3, 2, 1, 0};
      for (int iteration = 0; iteration < 5; ++iteration) {
        for (const std::size_t i : order) {
          model.compute(comm.rank(), i);
          reducer.mark_ready(i);
        }
        reducer.finish();
        expect_all(model, comm.size());
        const GradientStatistics& statistics = reducer.statistics();
        EXPECT_EQ(statistics.bytes, 4 * 930U);
        EXPECT_EQ(statistics.buckets.size(), iteration == 0 ? before : reducer.buckets().size());
      }
      EXPECT_EQ(reducer.buckets().size() != before, more);
    }
  });
}

TEST(GradientSteadyState, AllocatesNothing) {
  run_ranks(2, {}, [](Communicator& comm) {
    for (const WireType wire : {WireType::exact, WireType::bf16}) {
      ToyModel<float> model;
      GradientOptions options = small_buckets(Average::samples);
      options.wire = wire;
      GradientReducer reducer(comm, model.parameters(), options);
      const auto iterate = [&] {
        reducer.set_samples(3);
        for (std::size_t i = 0; i < model.size(); ++i) reducer.mark_ready(i);
        reducer.finish();
      };
      for (int warm_up = 0; warm_up < 5; ++warm_up) iterate();
      comm.barrier();
      const long before = allocations();
      for (int iteration = 0; iteration < 100; ++iteration) iterate();
      comm.barrier();
      EXPECT_EQ(allocations() - before, 0);
      comm.barrier();
    }
  });
}

TEST(GradientTrace, IsOneFileOfAllRanks) {
  const std::string file = testing::TempDir() + "/rondo_gradients.trace.json";
  run_ranks(3, {}, [&](Communicator& comm) {
    ToyModel<float> model;
    GradientOptions options = small_buckets(Average::samples);
    options.trace = true;
    GradientReducer reducer(comm, model.parameters(), options);
    for (int iteration = 0; iteration < 2; ++iteration) {
      const auto start = std::chrono::steady_clock::now();
      model.compute(comm.rank(), 4);
      reducer.record_compute("forward", start, std::chrono::steady_clock::now());
      reducer.set_samples(1);
      backward(reducer, model, comm.rank());
      reducer.finish();
    }
    reducer.write_trace(file);
    expect_in("cannot be written", usage_error([&] { reducer.write_trace("/nowhere/at/all"); }));
  });
  const nlohmann::json trace = nlohmann::json::parse(std::ifstream(file));
  std::map<std::string, int> seen;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") continue;
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_GE(event.value("dur", 0.0), 0);
    ++seen[event.at("cat").get<std::string>() + std::to_string(event.at("pid").get<int>())];
    const std::string iteration = std::to_string(event.at("args").at("iteration").get<int>());
    if (event.at("cat") == "compute")
      ++seen[event.at("name").get<std::string>() + ", " + iteration];
  }
  for (const std::string rank : {"0", "1", "2"}) {
    EXPECT_EQ(seen["compute" + rank], 2 * static_cast<int>(kToySizes.size() + 1));
    EXPECT_GE(seen["transfer" + rank], 8);
    EXPECT_GE(seen["queue" + rank], 16);
  }
  for (const std::string iteration : {"1", "2"}) {
    EXPECT_EQ(seen["forward, " + iteration], 3);
    EXPECT_EQ(seen["p4, " + iteration], 3);
  }
}

TEST(GradientTrace, NeedsToBeAskedFor) {
  run_ranks(2, {}, [&](Communicator& comm) {
    std::vector<float> gradient(10);
    GradientOptions options = small_buckets();
    options.trace = comm.rank() == 0;
    GradientReducer reducer(comm, {{"w", gradient}}, options);
    expect_in("rank 1: write_trace", usage_error([&] { reducer.write_trace("unused"); }));
  });
}

// Bucket sizes from what the ranks measure: whatever comes out, all ranks have the same.
TEST_P(Gradients, ChooseTheirBucketSize) {
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

INSTANTIATE_TEST_SUITE_P(Ranks, WireGradients,
                         testing::Combine(testing::Values(1, 2, 3, 4),
                                          testing::Values(WireType::exact, WireType::bf16,
                                                          WireType::f16)));
INSTANTIATE_TEST_SUITE_P(Ranks, Gradients, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace rondo::test

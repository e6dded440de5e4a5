// Uneven shares: samples, passes under no_sync, and ranks that run out of data.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "tests/gradient/reducer_checks.hpp"

namespace rondo::test {
namespace {

class GradientPasses : public Gradients {};

// Ranks have different samples and different numbers of them; the result is that of one rank with
// all samples.
TEST_P(GradientPasses, OfUnevenSharesAsOneRankWithAllSamples) {
  constexpr std::size_t kSize = 3000;
  const auto of_sample = [](std::size_t sample, std::size_t e) {
    return static_cast<double>((sample * 31 + e * 5) % 64);
  };
  for (const LocalGradient local :
       {LocalGradient::sum_of_samples, LocalGradient::mean_of_samples}) {
    on_ranks([&](Communicator& comm) {
      // Where a rank divides, its share is a power of two, so that its mean is exact; all totals
      // are powers of two.
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
      GradientReducer reducer(comm, {Parameter::gradient_only("w", gradient)}, options);
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

// A mean over no samples is NaN; it must not change the result.
TEST_P(GradientPasses, OfARankWithoutSamplesCountForNothing) {
  for (const LocalGradient local :
       {LocalGradient::mean_of_samples, LocalGradient::sum_of_samples}) {
    on_ranks([local](Communicator& comm) {
      std::vector<float> gradient(1000);
      GradientOptions options = small_buckets(Average::samples);
      options.local = local;
      GradientReducer reducer(comm, {Parameter::gradient_only("w", gradient)}, options);
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

// Errors of marks that come too late, or under no_sync, are reported at the end of the next
// iteration.
TEST_P(GradientPasses, MarkedWronglyBetweenIterationsAreToldInTheNext) {
  on_ranks([](Communicator& comm) {
    const bool last = comm.rank() == comm.size() - 1;
    std::vector<float> gradient(64);
    std::vector<float> other(64);
    GradientReducer reducer(comm, {Parameter::gradient_only("w", gradient)}, small_buckets());
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

// A rank that has joined gets no errors of the ranks that it follows.
TEST_P(GradientPasses, OfRanksThatHaveJoinedPassOverErrors) {
  if (ranks() == 1) return;
  on_ranks([](Communicator& comm) {
    std::vector<float> gradient(64);
    GradientReducer reducer(comm, {Parameter::gradient_only("w", gradient)}, small_buckets());
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

TEST_P(GradientPasses, OfPassesWithoutSyncStayWhatTheyAre) {
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
TEST_P(GradientPasses, OfDifferentNumbersOfPassesAreAnErrorOnEveryRank) {
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

// Rank r has r + 1 batches. Ranks without further batches follow the steps of the others.
TEST_P(GradientPasses, OfRanksThatRunOutOfDataEarly) {
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

INSTANTIATE_TEST_SUITE_P(Ranks, GradientPasses, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace rondo::test

// What a reducer tells all ranks when one of them does something wrong.

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "tests/gradient/reducer_checks.hpp"

namespace rondo::test {
namespace {

class GradientErrors : public Gradients {};

TEST(GradientsThroughAHook, ThatThrowsEndForAll) {
  run_ranks(2, {}, [](Communicator& comm) {
    std::vector<float> gradient(100);
    GradientOptions options = small_buckets();
    options.hook = [&](Communicator& ranks, const GradientBucket& bucket) {
      if (ranks.rank() == 1) throw std::runtime_error("no more disk");
      ranks.all_reduce(bucket.as<float>());
    };
    GradientReducer reducer(comm, {Parameter::gradient_only("w", gradient)}, options);
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

// Runs `wrong` on the last rank: all ranks must get an error with the same words, and the next
// iteration must succeed.
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

TEST_P(GradientErrors, ThatAreMissingAreNamedOnEveryRank) {
  expect_told_by_all(ranks(), {"finish", "parameter 4 ('p4')", "allow_unused"},
                     [](GradientReducer& reducer, ToyModel<float>& model) {
                       for (std::size_t i = 0; i < model.size(); ++i) {
                         if (i != 4) reducer.mark_ready(i);
                       }
                     });
  expect_told_by_all(ranks(), {"finish", "(and 8 more) was not marked"},
                     [](GradientReducer&, ToyModel<float>&) {});
}

TEST_P(GradientErrors, MarkedTwiceAreNamedOnEveryRank) {
  expect_told_by_all(ranks(), {"mark_ready", "parameter 2 ('p2')", "before"},
                     [](GradientReducer& reducer, ToyModel<float>& model) {
                       backward(reducer, model, 0);
                       const std::string text = usage_error([&] { reducer.mark_ready(2); });
                       expect_in("parameter 2 ('p2')", text);
                     });
}

TEST_P(GradientErrors, FromElsewhereAreNamedOnEveryRank) {
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

TEST_P(GradientErrors, WithoutASampleCountAreToldOnEveryRank) {
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
    // A sample count does not hold for the next iteration.
    expect_in("set_samples", usage_error([&] { reducer.finish(); }));
  });
}

// Rank 0 leaves in the middle of an iteration with an error. No rank waits for it, and the errors
// of all ranks name the parameter.
TEST_P(GradientErrors, OfARankThatUnwindsEndForAllWithTheName) {
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

INSTANTIATE_TEST_SUITE_P(Ranks, GradientErrors, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace rondo::test

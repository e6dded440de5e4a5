// A reducer's statistics and timeline, and that its iterations allocate nothing.

#include <chrono>
#include <cstddef>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <rondo/rondo.hpp>

#include "tests/gradient/reducer_checks.hpp"
#include "tests/support/count_allocations.hpp"

namespace rondo::test {
namespace {

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

// Four buckets, then two or eight: the statistics of an iteration are those of its own buckets.
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
    GradientReducer reducer(comm, {Parameter::gradient_only("w", gradient)}, options);
    expect_in("rank 1: write_trace", usage_error([&] { reducer.write_trace("unused"); }));
  });
}

}  // namespace
}  // namespace rondo::test

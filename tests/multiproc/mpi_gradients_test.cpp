// Gradient reducers over MPI processes. RONDO_TEST_CARRIER=mpi or ucx forces that carrier onto one
// host.

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string_view>

#include <gtest/gtest.h>

#include <rondo/mpi.hpp>
#include <rondo/rondo.hpp>

#include "tests/gradient/toy_model.hpp"

namespace rondo::test {
namespace {

Communicator join() {
  CommunicatorOptions options;
  options.timeout = std::chrono::seconds(120);
  const char* carrier = std::getenv("RONDO_TEST_CARRIER");
  const std::string_view forced = carrier == nullptr ? "" : carrier;
  if (forced == "mpi") options.carrier = CarrierChoice::mpi;
  if (forced == "ucx") options.carrier = CarrierChoice::ucx;
  return from_mpi(MPI_COMM_WORLD, options);
}

GradientOptions small_buckets() {
  GradientOptions options;
  options.average = Average::sum;
  options.bucket_bytes = 2_KiB;
  return options;
}

// The toy model's sums are exact in every type for up to four ranks; for more ranks f32 is wide
// enough.
void expect_all(ToyModel<float>& model, int ranks, double factor = 1) {
  for (std::size_t i = 0; i < model.size(); ++i) {
    expect_sums<float>(std::span<const float>(model[i]), ranks, i, factor);
  }
}

TEST(MpiGradients, AreSummedWhileOthersAreMarked) {
  Communicator comm = join();
  for (const bool overlap : {true, false}) {
    for (const std::size_t bucket_bytes : {std::size_t{0}, 2_KiB, 64_KiB}) {
      ToyModel<float> model;
      GradientOptions options = small_buckets();
      options.overlap = overlap;
      options.bucket_bytes = bucket_bytes;
      GradientReducer reducer(comm, model.parameters(), options);
      std::mt19937 random(static_cast<unsigned>(comm.rank()));
      std::vector<std::size_t> order(model.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      for (int iteration = 1; iteration <= 10; ++iteration) {
        std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t i : order) {
          model.compute(comm.rank(), i, iteration);
          reducer.mark_ready(i);
        }
        reducer.finish();
        expect_all(model, comm.size(), iteration);
      }
    }
  }
}

TEST(MpiGradients, MissingOnOneRankAreNamedOnAll) {
  Communicator comm = join();
  ToyModel<float> model;
  GradientReducer reducer(comm, model.parameters(), small_buckets());
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (std::size_t i = 0; i < model.size(); ++i) {
      model.compute(comm.rank(), i);
      if (i != 5 || comm.rank() != 0 || iteration == 2) reducer.mark_ready(i);
    }
    if (iteration == 2) {
      reducer.finish();
      expect_all(model, comm.size());
      continue;
    }
    try {
      reducer.finish();
      FAIL() << "finish() returned";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string_view(error.what()).find("rank 0: finish: parameter 5 ('p5')"),
                std::string_view::npos)
          << error.what();
    }
  }
}

TEST(MpiGradients, OfRanksThatRunOutOfDataEarly) {
  Communicator comm = join();
  std::vector<float> value(64, static_cast<float>(comm.rank()));
  std::vector<float> gradient(64);
  GradientOptions options = small_buckets();
  options.average = Average::ranks;
  GradientReducer reducer(comm, {{"w", gradient, value}}, options);
  for (int epoch = 1; epoch <= 2; ++epoch) {
    for (int batch = 0; batch <= comm.rank(); ++batch) {
      std::fill(gradient.begin(), gradient.end(), 12.0F);
      reducer.mark_ready(0);
      reducer.finish();
      for (std::size_t e = 0; e < value.size(); ++e) value[e] -= gradient[e];
    }
    reducer.join();
    // Means over three ranks are rounded: thirds are scaled before they add up.
    ASSERT_NEAR(value[63], -12 * comm.size() * epoch, 1e-3);
  }
}

}  // namespace
}  // namespace rondo::test

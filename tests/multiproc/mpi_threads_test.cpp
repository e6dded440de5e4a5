// What MPI's thread level allows, with MPI edges: RONDO_TEST_THREADS names the level that mpi_main
// asks for.

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/mpi.hpp>
#include <rondo/rondo.hpp>

#include "tests/support/errors.hpp"

namespace rondo::test {
namespace {

int level() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level;
}

Communicator join() {
  return from_mpi(MPI_COMM_WORLD,
                  {.timeout = std::chrono::seconds(60), .carrier = CarrierChoice::mpi});
}

// The communicator still works after a refused call.
void expect_intact(Communicator& comm) {
  std::vector<int> ones(1000, 1);
  comm.all_reduce(ones);
  EXPECT_EQ(ones, std::vector<int>(1000, comm.size()));
}

TEST(MpiThreads, AnAsynchronousCallNeedsMultiple) {
  Communicator comm = join();
  std::vector<int> ones(1000, 1);
  const std::string text = usage_error([&] { comm.all_reduce_async(ones).wait(); });
  EXPECT_EQ(text.find("MPI_THREAD_MULTIPLE") != std::string::npos, level() < MPI_THREAD_MULTIPLE)
      << text;
  expect_intact(comm);
}

TEST(MpiThreads, ACallFromAnotherThreadNeedsSerialized) {
  Communicator comm = join();
  std::string text;
  std::thread([&] { text = usage_error([&] { expect_intact(comm); }); }).join();
  EXPECT_EQ(text.find("MPI_THREAD_SERIALIZED") != std::string::npos,
            level() < MPI_THREAD_SERIALIZED)
      << text;
  expect_intact(comm);
}

// All ranks get the same error, and can make a reducer without overlap instead.
TEST(MpiThreads, OverlapNeedsAThreadThatMayCall) {
  Communicator comm = join();
  std::vector<float> gradient(1000, 1);
  GradientOptions options;
  options.average = Average::sum;
  options.bucket_bytes = 1_KiB;
  const std::string text = usage_error([&] {
    const GradientReducer reducer(comm, {Parameter::gradient_only("w", gradient)}, options);
  });
  if (level() < MPI_THREAD_SERIALIZED) {
    EXPECT_NE(text.find("rank 0: GradientOptions::overlap"), std::string::npos) << text;
    EXPECT_NE(text.find("MPI_THREAD_SERIALIZED"), std::string::npos) << text;
  } else {
    EXPECT_EQ(text, "no UsageError");
  }
  options.overlap = false;
  GradientReducer reducer(comm, {Parameter::gradient_only("w", gradient)}, options);
  reducer.mark_ready(0);
  reducer.finish();
  const auto size = static_cast<float>(comm.size());
  EXPECT_EQ(gradient, std::vector<float>(1000, size));
  // A finish() that another thread is refused begins nothing: this thread can still call it.
  reducer.mark_ready(0);
  std::string refusal;
  std::thread([&] { refusal = usage_error([&] { reducer.finish(); }); }).join();
  if (level() < MPI_THREAD_SERIALIZED) {
    EXPECT_NE(refusal.find("MPI_THREAD_SERIALIZED"), std::string::npos) << refusal;
    reducer.finish();
  } else {
    EXPECT_EQ(refusal, "no UsageError");
  }
  EXPECT_EQ(gradient, std::vector<float>(1000, size * size));
}

}  // namespace
}  // namespace rondo::test

// Calls without elements, by every algorithm, named in the call or by RONDO_ALGO, wherever the
// ranks are: they are made, or refused with a UsageError, and the next call is right.

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "tests/support/forked.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/ucx.hpp"

namespace rondo::test {
namespace {

// What a refused call does on one rank it does on all.
template <class Make>
void make_or_be_refused(Communicator& comm, Make make) {
  int refused = 0;
  try {
    make();
  } catch (const UsageError&) {
    refused = 1;
  }
  std::vector<int> all = {refused};
  comm.all_reduce(all, ReduceOp::sum, {.algorithm = Algorithm::ring});
  EXPECT_EQ(all[0], refused * comm.size());
}

void make_empty_calls(Communicator& comm, const CallOptions& options) {
  std::vector<float> nothing;
  make_or_be_refused(comm, [&] { comm.all_reduce(nothing, ReduceOp::sum, options); });
  make_or_be_refused(comm, [&] { comm.all_reduce(nothing, ReduceOp::avg, options); });
  make_or_be_refused(comm, [&] { comm.reduce_scatter(nothing, ReduceOp::max, options); });
  make_or_be_refused(comm, [&] { comm.all_gather(nothing, options); });
  make_or_be_refused(comm, [&] { comm.broadcast(nothing, comm.size() - 1, options); });
  make_or_be_refused(comm, [&] { comm.reduce(nothing, 0, ReduceOp::sum, options); });
  make_or_be_refused(comm, [&] { comm.barrier(options); });
  make_or_be_refused(comm, [&] { comm.all_to_all(nothing, nothing, options); });
}

std::vector<Algorithm> all_algorithms() {
  std::vector<Algorithm> all;
  for (int i = 0; i < kAlgorithmCount; ++i) all.push_back(static_cast<Algorithm>(i));
  return all;
}

void make_all(Communicator& comm) {
  for (const Algorithm algorithm : all_algorithms()) {
    make_empty_calls(comm, {.algorithm = algorithm});
  }
}

class EmptyCalls : public testing::TestWithParam<int> {};

TEST_P(EmptyCalls, OfThreads) {
  run_ranks(GetParam(), {}, [](Communicator& comm) { make_all(comm); });
}

// The environment is read as ranks join.
template <class Join>
void expect_by_processes(int size, Join join) {
  const std::vector<int> codes = run_forked(size, [&](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);  // which address sanitizers do not endure
    {
      Communicator comm = join(me);
      make_all(comm);
    }
    for (const Algorithm algorithm : all_algorithms()) {
      ::setenv("RONDO_ALGO", std::string(name(algorithm)).c_str(), 1);
      Communicator comm = join(me);
      make_empty_calls(comm, {});
    }
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(size), 0));
}

TEST_P(EmptyCalls, OfProcesses) {
  expect_by_processes(GetParam(), [](const ForkedRank& me) {
    return from_socket(me.socket, me.rank, me.size, {});
  });
}

TEST_P(EmptyCalls, BetweenHosts) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  expect_by_processes(GetParam(), [](const ForkedRank& me) {
    CommunicatorOptions options;
    options.carrier = CarrierChoice::ucx;
    return from_store("unix://" + me.socket, me.rank, me.size, options);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, EmptyCalls, testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace rondo::test

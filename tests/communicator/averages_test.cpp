// Averages of 16-bit floats whose sums are more than the type holds: by every algorithm, exactly.

#include <cstdlib>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "tests/support/forked.hpp"
#include "tests/support/large_values.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/ucx.hpp"

namespace rondo::test {
namespace {

// Zero if all elements are right.
template <class T>
int check(Communicator& comm, std::size_t count, const CallOptions& options,
          std::span<T> memory = {}) {
  const int size = comm.size();
  std::vector<T> ordinary(memory.empty() ? count : 0);
  const std::span<T> data = memory.empty() ? std::span(ordinary) : memory.first(count);
  const auto refill = [&] {
    for (std::size_t i = 0; i < count; ++i) data[i] = large_value<T>(i, comm.rank());
  };
  int wrong = 0;
  const auto compare = [&](const Range& range) {
    for (std::size_t i = range.offset; i < range.offset + range.count; ++i) {
      const T expected = large_value<T>(i, (size - 1) / 2.0);
      if (data[i].bits != expected.bits && ++wrong == 1) {
        ADD_FAILURE() << name(kDataTypeOf<T>) << " by " << name(*options.algorithm) << ": element "
                      << i << " of " << count << " of " << size << " ranks is "
                      << static_cast<float>(data[i]) << ", not " << static_cast<float>(expected);
      }
    }
  };
  refill();
  comm.all_reduce(data, ReduceOp::avg, options);
  compare({0, count});
  const Algorithm algorithm = *options.algorithm;
  if (algorithm == Algorithm::recursive_doubling || algorithm == Algorithm::halving_doubling ||
      algorithm == Algorithm::hierarchical) {
    return wrong;
  }
  refill();
  comm.reduce_scatter(data, ReduceOp::avg, options);
  compare(chunk_range(count, static_cast<std::uint64_t>(size),
                      static_cast<std::uint64_t>(comm.rank())));
  refill();
  comm.reduce(data, size - 1, ReduceOp::avg, options);
  if (comm.rank() == size - 1) compare({0, count});
  return wrong;
}

void check_all(Communicator& comm, const std::vector<Algorithm>& algorithms,
               const std::vector<std::size_t>& counts) {
  for (const Algorithm algorithm : algorithms) {
    for (const std::size_t count : counts) {
      check<Float16>(comm, count, {.algorithm = algorithm});
      check<BFloat16>(comm, count, {.algorithm = algorithm});
    }
  }
}

class Averages : public testing::TestWithParam<int> {};

TEST_P(Averages, OfThreadsDoNotOverflow) {
  run_ranks(GetParam(), {}, [](Communicator& comm) {
    check_all(comm, {Algorithm::one_shot}, {1, 100});
    check_all(comm, {Algorithm::ring, Algorithm::naive, Algorithm::direct, Algorithm::chain},
              {1, 2000, 40'000});
    check_all(comm, {Algorithm::automatic}, {1, 2000, 40'000});
  });
}

TEST_P(Averages, OfProcessesDoNotOverflow) {
  const std::vector<int> codes = run_forked(GetParam(), [](const ForkedRank& me) {
    Communicator comm = from_socket(me.socket, me.rank, me.size);
    check_all(comm, {Algorithm::ring, Algorithm::naive}, {1, 2000, 40'000});
    if (me.size > 1) check_all(comm, {Algorithm::hierarchical}, {1, 2000, 40'000});
    RegisteredMemory<Float16> memory = comm.allocate<Float16>(40'000);
    check<Float16>(comm, 40'000, {.algorithm = Algorithm::direct}, memory.span());
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(GetParam()), 0));
}

TEST_P(Averages, BetweenHostsDoNotOverflow) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  const std::vector<int> codes = run_forked(GetParam(), [](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);  // which address sanitizers do not endure
    CommunicatorOptions options;
    options.carrier = CarrierChoice::ucx;
    Communicator comm = from_store("unix://" + me.socket, me.rank, me.size, options);
    check_all(comm, {Algorithm::recursive_doubling, Algorithm::halving_doubling}, {1, 100, 2000});
    check_all(comm, {Algorithm::ring, Algorithm::naive}, {1, 2000, 40'000});
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(GetParam()), 0));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Averages, testing::Values(1, 2, 3, 4, 5));

}  // namespace
}  // namespace rondo::test

// Ranks that make different calls: every pair, by threads and by processes of one host.

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/draw.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/mismatch_matrix.hpp"
#include "tests/support/ranks.hpp"

namespace rondo::test {
namespace {

// 400 bytes; and 80 KB, which fit the slots of a FIFO, so that a rank that only sends waits for no
// free slot.
class EveryMismatch : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  [[nodiscard]] static int ranks() { return std::get<0>(GetParam()); }
  [[nodiscard]] static std::vector<Mismatch> mismatches(std::vector<Algorithm> algorithms) {
    const bool large = std::get<1>(GetParam());
    if (!large) algorithms.insert(algorithms.end(), {Algorithm::one_shot, Algorithm::direct});
    return drawn(all_mismatches(large ? 20'000 : 100, algorithms));
  }
};

// Each rank is the odd one in turn.
TEST_P(EveryMismatch, OfThreadsIsAnErrorOnEveryRank) {
  int odd = 0;
  for (const Mismatch& mismatch :
       mismatches({Algorithm::ring, Algorithm::naive, Algorithm::chain, Algorithm::tree})) {
    odd = (odd + 1) % ranks();
    run_ranks(ranks(), {.timeout = std::chrono::seconds(60)},
              [&](Communicator& comm) { EXPECT_EQ(complaint_about(comm, mismatch, odd), ""); });
  }
}

// Among processes, direct needs reachable memory.
std::string complaint_with_memory(Communicator& comm, const Mismatch& mismatch, int odd) {
  RegisteredMemory<double> memory(1000);
  const bool fits = std::max(mismatch.of_one.count, mismatch.of_others.count) < memory.size();
  return complaint_about(comm, mismatch, odd, fits ? memory.span() : std::span<double>());
}

TEST_P(EveryMismatch, OfProcessesIsAnErrorOnEveryRank) {
  const std::vector<int> codes = run_forked(ranks(), [&](const ForkedRank& me) {
    int wrong = 0;
    std::size_t number = 0;
    for (const Mismatch& mismatch : mismatches({Algorithm::ring, Algorithm::naive, Algorithm::chain,
                                                Algorithm::hierarchical, Algorithm::tree})) {
      Communicator comm = from_socket(me.socket + std::to_string(number++), me.rank, me.size,
                                      {.timeout = std::chrono::seconds(60)});
      const std::string complaint =
          complaint_with_memory(comm, mismatch, static_cast<int>(number) % me.size);
      if (complaint.empty()) continue;
      ++wrong;
      std::fprintf(stderr, "%s\n", complaint.c_str());
    }
    return wrong == 0 ? 0 : 1;
  });
  EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(ranks()), 0));
}

// Each of 2 to 4 ranks (threads) makes the calls `calls_of(rank, ranks)`, and must get a mismatch
// error.
void expect_errors(const std::function<std::vector<Call>(int, int)>& calls_of) {
  for (const int ranks : {2, 3, 4}) {
    for (const bool asynchronous : {false, true}) {
      run_ranks(ranks, {.timeout = std::chrono::seconds(60)}, [&](Communicator& comm) {
        const std::vector<Call> calls = calls_of(comm.rank(), ranks);
        const std::string error = error_in_calls_or_next(comm, calls, asynchronous);
        EXPECT_NE(error.find("Make the same calls"), std::string::npos)
            << "rank " << comm.rank() << " of " << ranks << ", " << name(calls[0].collective)
            << " of " << calls[0].count << ": '" << error << "'";
      });
    }
  }
}

Call call_of(Collective collective, Algorithm algorithm, std::size_t count, int root) {
  Call call;
  call.collective = collective;
  call.count = collective == Collective::barrier ? 0 : count;
  call.root = root;
  call.options.algorithm = algorithm;
  return call;
}

// 3.2 MB are more than the slots of a FIFO hold.
constexpr std::size_t kCounts[] = {100, 20'000, 400'000};

TEST(DifferentOnEveryRank, RootsAreAnErrorOnEveryRank) {
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::naive}) {
      for (const std::size_t count : kCounts) {
        expect_errors([&](int rank, int) {
          return std::vector<Call>{call_of(collective, algorithm, count, rank)};
        });
      }
    }
  }
}

TEST(DifferentOnEveryRank, TheLastRootIsNoneOfTheOthers) {
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    for (const std::size_t count : kCounts) {
      expect_errors([&](int rank, int ranks) {
        return std::vector<Call>{
            call_of(collective, Algorithm::ring, count, rank == ranks - 1 ? ranks - 1 : 0)};
      });
    }
  }
}

TEST(DifferentOnEveryRank, AnotherOrderIsAnErrorOnEveryRank) {
  constexpr Collective kAll[] = {Collective::all_reduce, Collective::reduce_scatter,
                                 Collective::all_gather, Collective::broadcast,
                                 Collective::reduce,     Collective::barrier};
  for (const Collective first : kAll) {
    for (const Collective second : kAll) {
      if (first == second) continue;
      for (const std::size_t count : kCounts) {
        expect_errors([&](int rank, int ranks) {
          std::vector<Call> calls = {call_of(first, Algorithm::ring, count, 0),
                                     call_of(second, Algorithm::ring, count, ranks - 1)};
          if (rank == 1) std::swap(calls[0], calls[1]);
          return calls;
        });
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryMismatch,
                         testing::Combine(testing::Values(2, 3, 4), testing::Bool()));

}  // namespace
}  // namespace rondo::test

// Ranks that make different calls: every pair, by threads and by processes of one host.

#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/forked.hpp"
#include "tests/support/mismatch_matrix.hpp"
#include "tests/support/ranks.hpp"

namespace rondo::test {
namespace {

// 400 bytes; and 80 KB, which fit the slots of a FIFO, so that a rank that only sends waits for no free slot.
class EveryMismatch : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  [[nodiscard]] static int ranks() { return std::get<0>(GetParam()); }
  [[nodiscard]] static std::vector<Mismatch> mismatches() {
    if (std::get<1>(GetParam())) return all_mismatches(20'000, {Algorithm::ring, Algorithm::naive});
    return all_mismatches(100, {Algorithm::ring, Algorithm::naive, Algorithm::one_shot});
  }
};

// Each rank is the odd one in turn.
TEST_P(EveryMismatch, OfThreadsIsAnErrorOnEveryRank) {
  int odd = 0;
  for (const Mismatch& mismatch : mismatches()) {
    odd = (odd + 1) % ranks();
    run_ranks(ranks(), {.timeout = std::chrono::seconds(60)},
              [&](Communicator& comm) { EXPECT_EQ(complaint_about(comm, mismatch, odd), ""); });
  }
}

TEST_P(EveryMismatch, OfProcessesIsAnErrorOnEveryRank) {
  const std::vector<int> codes = run_forked(ranks(), [&](const ForkedRank& me) {
    int wrong = 0;
    std::size_t number = 0;
    for (const Mismatch& mismatch : mismatches()) {
      Communicator comm = from_socket(me.socket + std::to_string(number++), me.rank, me.size,
                                      {.timeout = std::chrono::seconds(60)});
      const std::string complaint =
          complaint_about(comm, mismatch, static_cast<int>(number) % me.size);
      if (complaint.empty()) continue;
      ++wrong;
      std::fprintf(stderr, "%s\n", complaint.c_str());
    }
    return wrong == 0 ? 0 : 1;
  });
  EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(ranks()), 0));
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryMismatch,
                         testing::Combine(testing::Values(2, 3, 4), testing::Bool()));

}  // namespace
}  // namespace rondo::test

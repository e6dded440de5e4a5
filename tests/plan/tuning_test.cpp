// The table from which `auto` chooses.

#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "plan/tuning.hpp"
#include "tests/support/ranks.hpp"

namespace rondo::test {
namespace {

using detail::BetweenHosts;
using detail::CostPlace;
using detail::parse_tuning;
using detail::Route;
using detail::Tuned;
using detail::Tuning;

// With links of 10 Gbit/s and 30 us.
CostPlace place_of(int ranks, int hosts) {
  CostPlace place;
  place.ranks = ranks;
  place.hosts = hosts;
  place.rails = ranks / hosts;
  place.link = {30'000, 800};
  place.ring = {std::size_t{128} << 10U, 64};
  place.off_ring = {std::size_t{32} << 10U, 8};
  place.trees = {std::size_t{32} << 10U, 16};
  return place;
}

constexpr const char* kText =
    "# route ranks bytes algorithm\n"
    "\n"
    "shm 2 0 one_shot\n"
    "shm 2 1000 ring\n"
    "shm 8 0 naive\n"
    "mpi 4 0 recursive_doubling\n";

TEST(Tuning, TakesTheRuleBelowTheSizeAndTheNumberOfRanks) {
  const Tuning tuning = parse_tuning(kText, "file");
  EXPECT_EQ(tuning.count, 4U);
  EXPECT_EQ(tuning.algorithms_for(Route::memory, 2).at(0, Algorithm::ring), Algorithm::one_shot);
  EXPECT_EQ(tuning.algorithms_for(Route::memory, 2).at(999, Algorithm::ring), Algorithm::one_shot);
  EXPECT_EQ(tuning.algorithms_for(Route::memory, 2).at(1000, Algorithm::ring), Algorithm::ring);
  EXPECT_EQ(tuning.algorithms_for(Route::memory, 7).at(1U << 30U, Algorithm::ring),
            Algorithm::ring);
  EXPECT_EQ(tuning.algorithms_for(Route::memory, 9).at(1U << 30U, Algorithm::ring),
            Algorithm::naive);
  EXPECT_EQ(tuning.algorithms_for(Route::network, 2).at(5, Algorithm::ring),
            Algorithm::recursive_doubling);
  EXPECT_EQ(Tuning{}.algorithms_for(Route::memory, 2).at(5, Algorithm::ring), Algorithm::ring);
  EXPECT_EQ(tuning.algorithms_for(Route::buffers, 2).at(999, Algorithm::ring), Algorithm::one_shot)
      << "of shm";
  const Tuning both = parse_tuning("shm 2 0 ring\nbuffers 4 100 direct\n", "file");
  EXPECT_EQ(both.algorithms_for(Route::buffers, 2).at(100, Algorithm::ring), Algorithm::direct);
  EXPECT_EQ(both.algorithms_for(Route::buffers, 2).at(99, Algorithm::ring), Algorithm::ring);
  EXPECT_EQ(both.algorithms_for(Route::memory, 2).at(100, Algorithm::ring), Algorithm::ring);
  EXPECT_EQ(tuning.algorithms_for(Route::hosts, 4).at(5, Algorithm::ring),
            Algorithm::recursive_doubling)
      << "of mpi";
  EXPECT_EQ(parse_tuning("hosts 4 0 hierarchical\n", "file")
                .algorithms_for(Route::hosts, 4)
                .at(5, Algorithm::ring),
            Algorithm::hierarchical);
}

TEST(Tuning, LeadersExchangeAsSoManyRanksWould) {
  const Tuned tuned(parse_tuning(kText, "file"), 8, place_of(8, 4));
  EXPECT_EQ(tuned.between_hosts(5), (BetweenHosts{Algorithm::recursive_doubling, false}));
  EXPECT_EQ(tuned.between_hosts(1U << 20U), (BetweenHosts{Algorithm::ring, true}));
  // The model decides, if the file has no rules for `mpi`.
  const Tuned without(parse_tuning("hosts 4 0 naive\n", "file"), 8, place_of(8, 2));
  EXPECT_EQ(without.between_hosts(5), (BetweenHosts{Algorithm::recursive_doubling, false}));
  EXPECT_EQ(without.at(Route::hosts, Collective::all_reduce, 5), Algorithm::naive);
}

// Rules are measured with all_reduces; other collectives go by the model.
TEST(Tuning, AFilesRulesAreForAllReducesAndBarriers) {
  const Tuned tuned(parse_tuning(kText, "file"), 8, place_of(8, 8));
  for (const Collective collective : {Collective::all_reduce, Collective::barrier}) {
    EXPECT_EQ(tuned.at(Route::network, collective, 1U << 30U), Algorithm::recursive_doubling);
  }
  EXPECT_EQ(tuned.at(Route::network, Collective::all_gather, 5), Algorithm::tree);
  EXPECT_EQ(tuned.at(Route::network, Collective::all_gather, 1U << 30U), Algorithm::ring);
  const Tuned by_model(detail::default_tuning(), 8, place_of(8, 8));
  EXPECT_EQ(by_model.at(Route::network, Collective::all_reduce, 1U << 30U), Algorithm::ring);
  EXPECT_EQ(by_model.at(Route::hosts, Collective::all_reduce, 5), Algorithm::hierarchical);
  EXPECT_EQ(by_model.at(Route::hosts, Collective::all_gather, 5), Algorithm::tree);
}

TEST(Tuning, BelowAllItsRulesTheSmallestNumberOfRanksCounts) {
  const Tuning above = parse_tuning("shm 8 0 ring\nshm 4 0 naive\nshm 6 0 ring\n", "file");
  EXPECT_EQ(above.algorithms_for(Route::memory, 2).at(0, Algorithm::ring), Algorithm::naive);
  const Tuning around = parse_tuning("shm 8 0 ring\nshm 2 0 naive\nshm 4 0 ring\n", "file");
  EXPECT_EQ(around.algorithms_for(Route::memory, 3).at(0, Algorithm::ring), Algorithm::naive);
}

TEST(Tuning, NamesTheLineThatIsWrong) {
  for (const char* line :
       {"shm 2 0", "shm 2 0 rong", "tcp 2 0 ring", "shm 0 0 ring", "shm 2 x ring",
        "shm 2 0 ring more", "shm 2 -1 ring", "p2p 2 0 ring", "shm 2 0 auto"}) {
    try {
      parse_tuning(std::string("# comment\n") + line + "\n", "my.tuning");
      ADD_FAILURE() << line;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("my.tuning, line 2"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Tuning, AFileWithoutRulesIsAnError) {
  EXPECT_THROW(parse_tuning("", "empty"), UsageError);
  EXPECT_THROW(parse_tuning("# shm 2 0 ring\n  \n", "comments"), UsageError);
  EXPECT_EQ(parse_tuning("shm 2 7 ring\r\n\r\n", "of another system").rules[0].from_bytes, 7U);
}

TEST(Tuning, TheEnvironmentNamesAFileAndOrdersWin) {
  const std::string file = ::testing::TempDir() + "rondo_tuning_test";
  std::ofstream(file) << "shm 1 0 naive\nshm 1 100 one_shot\n";
  ::setenv("RONDO_TUNING", file.c_str(), 1);
  run_ranks(2, {}, [](Communicator& comm) {
    Call call{.collective = Collective::barrier};
    EXPECT_EQ(comm.algorithm_for(call), Algorithm::naive);
    EXPECT_EQ(comm.algorithm_for({.collective = Collective::all_gather}), Algorithm::ring);
    call.options.algorithm = Algorithm::ring;
    EXPECT_EQ(comm.algorithm_for(call), Algorithm::ring);
    // The table names one_shot, but the vector is too large for its outboxes: the call uses ring.
    std::vector<float> data(1000000, 1.0F);
    comm.all_reduce(data);
    EXPECT_EQ(data.back(), 2.0F);
  });
  for (const char* wrong : {"/nowhere", "/"}) {
    ::setenv("RONDO_TUNING", wrong, 1);
    EXPECT_THROW(local_group(2), UsageError) << wrong;
  }
  ::unsetenv("RONDO_TUNING");
}

}  // namespace
}  // namespace rondo::test

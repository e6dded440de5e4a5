// Which carrier an edge has, and why.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "joining/connect.hpp"
#include "joining/edges.hpp"

namespace rondo::detail {
namespace {

// Ranks 0 to 2 are on host a, rank 3 on host b; rank 1 could not map the memory of its host.
class Edges : public testing::Test {
 protected:
  Edges() {
    for (const std::string& name : hosts_.names()) places_.push_back({name, 0, -1, {}});
    shared_.mapped = {true, false, true, true};
    shared_.reasons = {"", "has no descriptors left", "", ""};
  }
  Edge between(int from, int to, CarrierChoice choice = CarrierChoice::automatic) const {
    return edge_of({{from, to}, {Algorithm::ring}}, facts(choice));
  }
  CarrierFacts facts(CarrierChoice choice) const {
    return {choice, Carrier::mpi, &hosts_, &places_, &shared_};
  }

  Hosts hosts_{{"a", "a", "a", "b"}};
  std::vector<RankPlace> places_;
  SharedMemory shared_;
};

TEST_F(Edges, GoByMemoryWhereBothRanksHaveIt) {
  EXPECT_EQ(between(0, 2).carrier, Carrier::shm);
  EXPECT_EQ(between(0, 2).reason, "host a");
  EXPECT_TRUE(between(0, 2).in_ring);
  EXPECT_EQ(between(2, 3).carrier, Carrier::mpi);
  EXPECT_EQ(between(2, 3).reason, "hosts a and b");
  EXPECT_EQ(between(0, 2, CarrierChoice::mpi).carrier, Carrier::mpi);
}

TEST_F(Edges, NameTheRankThatCouldNotMapTheMemory) {
  for (const Edge& edge : {between(0, 1), between(1, 0)}) {
    EXPECT_EQ(edge.carrier, Carrier::mpi);
    EXPECT_EQ(edge.reason, "one host, but rank 1 has no descriptors left");
  }
}

TEST_F(Edges, AreAnErrorWhereOnlyMemoryWillDo) {
  const std::vector<ScheduleEdge> edges = {{{0, 2}, {Algorithm::ring}},
                                           {{2, 3}, {Algorithm::ring}}};
  EXPECT_EQ(settle_edges(edges, facts(CarrierChoice::automatic), 0).size(), 2U);
  EXPECT_THROW(settle_edges(edges, facts(CarrierChoice::shm), 0), TransportError);
}

TEST_F(Edges, KnowWhoIsOnWhichHost) {
  EXPECT_EQ(hosts_.ranks_with(1), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(hosts_.lowest_rank_with(2), 0);
  EXPECT_EQ(hosts_.lowest_rank_with(3), 3);
  EXPECT_FALSE(hosts_.all_on_one());
  EXPECT_TRUE(Hosts({"a", "a"}).all_on_one());
  EXPECT_EQ(ranks_elsewhere(4, {0, 2}), (std::vector<int>{1, 3}));
}

}  // namespace
}  // namespace rondo::detail

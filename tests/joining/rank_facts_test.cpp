// What ranks conclude from what they have told each other.

#include <vector>

#include <gtest/gtest.h>

#include "base/put.hpp"
#include "joining/rank_facts.hpp"

namespace rondo::detail {
namespace {

RankFacts facts_of(const char* host, const char* boot) {
  RankFacts facts;
  put(facts.host, host);
  put(facts.boot, boot);
  return facts;
}

// Machines that were made from one image may have one name; containers of one machine may have
// several.
TEST(RankFacts, HostsAreToldApartByWhatTheirSystemsSayToo) {
  const std::vector<RankFacts> facts = {facts_of("node", "boot-1"), facts_of("node", "boot-2"),
                                        facts_of("node", "boot-1"), facts_of("pod", "boot-1")};
  const std::vector<RankPlace> places = places_of(facts);
  EXPECT_TRUE(on_one_host(places[0], places[2]));
  EXPECT_FALSE(on_one_host(places[0], places[1]));
  EXPECT_FALSE(on_one_host(places[0], places[3]));
  const Hosts hosts = hosts_of(facts);
  EXPECT_FALSE(hosts.all_on_one());
  EXPECT_EQ(hosts.ranks_with(0), (std::vector<int>{0, 2}));
  EXPECT_EQ(hosts.ranks_with(1), std::vector<int>{1});
  EXPECT_EQ(hosts.ranks_with(3), std::vector<int>{3});
}

}  // namespace
}  // namespace rondo::detail

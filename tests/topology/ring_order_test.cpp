#include "topology/ring_order.hpp"
#include "topology/device_ring.hpp"
#include "topology/machine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include <rondo/topology.hpp>

namespace rondo::detail {
namespace {

TEST(Rails, AreAsManyAsTheSmallestHostHasRanks) {
  EXPECT_EQ(rails_of({{0, 1}, {2, 3}, {4, 5}}),
            (std::vector<std::vector<int>>{{0, 2, 4}, {1, 3, 5}}));
  EXPECT_EQ(rails_of({{0, 3, 4}, {1}, {2, 5}}), (std::vector<std::vector<int>>{{0, 1, 2}}));
  EXPECT_EQ(rails_of({{0, 1, 2}}), (std::vector<std::vector<int>>{{0}, {1}, {2}}));
  std::vector<ScheduleEdge> edges = schedule_edges({0, 1, 2, 3}, {Algorithm::ring});
  add_rail_edges(edges, rails_of({{0, 1}, {2, 3}}));
  // 1 → 2 and 3 → 0 are the ring's; the rails add an edge each way between 0 and 2, and between 1
  // and 3.
  ASSERT_EQ(edges.size(), 8U);
  EXPECT_EQ(edges[4].ranks, (RankPair{0, 2}));
  EXPECT_FALSE(edges[4].in_ring());
  EXPECT_TRUE(edges[4].bulk);
}

// The first rail is the leaders', which also use the edges of naive and recursive_doubling.
TEST(Rails, HaveTheEdgesOfEachWayBetweenHosts) {
  const AlgorithmSet hierarchical = {Algorithm::hierarchical};
  const AlgorithmSet pairs = {Algorithm::recursive_doubling, Algorithm::halving_doubling};
  AlgorithmSet all = pairs;
  all.add(Algorithm::naive);
  AlgorithmSet in_ring = pairs;
  in_ring.add(Algorithm::ring);
  AlgorithmSet every = all;
  every.add(Algorithm::ring);
  std::vector<ScheduleEdge> edges;
  add_rail_edges(edges, {{0, 2, 4}});
  const std::vector<ScheduleEdge> expected = {
      {{0, 2}, hierarchical, true, every},
      {{2, 4}, hierarchical, true, in_ring},
      {{4, 0}, hierarchical, true, {Algorithm::ring, Algorithm::naive}},
      {{0, 4}, hierarchical, false, {Algorithm::naive}},
      {{2, 0}, hierarchical, false, all},
      {{4, 2}, hierarchical, false, pairs}};
  EXPECT_TRUE(std::is_permutation(edges.begin(), edges.end(), expected.begin(), expected.end()));
  edges.clear();
  add_rail_edges(edges, {{0, 2}, {1, 3}});
  for (const ScheduleEdge& edge : edges) {
    EXPECT_TRUE(edge.between_hosts.has(Algorithm::halving_doubling));
    EXPECT_EQ(edge.between_hosts.has(Algorithm::naive), edge.ranks.from % 2 == 0);
  }
}

TEST(RingOrder, IsRankOrderOnOneHost) {
  EXPECT_EQ(ring_order({{"a", -1}, {"a", -1}, {"a", -1}}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(rank_order(3), (std::vector<int>{0, 1, 2}));
}

TEST(RingOrder, VisitsEachHostOnce) {
  EXPECT_EQ(ring_order({{"a", 0}, {"b", 0}, {"a", 0}, {"c", 0}, {"b", 0}, {"a", 0}}),
            (std::vector<int>{0, 2, 5, 1, 4, 3}));
}

TEST(RingOrder, VisitsEachNumaNodeOfAHostOnceAndStartsAtRankZero) {
  EXPECT_EQ(ring_order({{"a", 1}, {"a", 0}, {"a", 1}, {"a", 0}}), (std::vector<int>{0, 2, 1, 3}));
}

TEST(ScheduleEdges, AreTheRingFirstAndEachEdgeOnce) {
  constexpr AlgorithmSet kRing = {Algorithm::ring};
  constexpr AlgorithmSet kNaive = {Algorithm::naive};
  constexpr AlgorithmSet kBoth = {Algorithm::ring, Algorithm::naive};
  const std::vector<ScheduleEdge> expected = {
      {{0, 2}, kBoth, true}, {{2, 1}, kRing, true}, {{1, 3}, kRing, true}, {{3, 0}, kBoth, true},
      {{0, 1}, kNaive},      {{0, 3}, kNaive},      {{2, 0}, kNaive},      {{1, 0}, kNaive}};
  EXPECT_EQ(schedule_edges({0, 2, 1, 3}, kBoth), expected);
  EXPECT_TRUE(schedule_edges({0}, kBoth).empty());
}

TEST(ScheduleEdges, OfDoublingAreThoseOfPartners) {
  const auto edges = schedule_edges({0, 1, 2, 3, 4}, {Algorithm::recursive_doubling});
  // Rank 0 sends its vector to rank 1, which takes part for both; the others are ranks 2, 3 and 4.
  std::set<std::pair<int, int>> pairs;
  for (const ScheduleEdge& edge : edges) pairs.emplace(edge.ranks.from, edge.ranks.to);
  EXPECT_EQ(pairs,
            (std::set<std::pair<int, int>>{
                {0, 1}, {1, 0}, {1, 2}, {2, 1}, {3, 4}, {4, 3}, {1, 3}, {3, 1}, {2, 4}, {4, 2}}));
}

// The links between the ranks of one host: `inner` within a group, `outer` between groups. `group`:
// of each rank.
std::vector<std::vector<DeviceLink>> grouped(const std::vector<int>& group, DeviceLink inner,
                                             DeviceLink outer) {
  std::vector<std::vector<DeviceLink>> links;
  for (std::size_t a = 0; a < group.size(); ++a) {
    links.emplace_back();
    for (std::size_t b = 0; b < group.size(); ++b) {
      links.back().push_back(a == b                 ? DeviceLink::same_device
                             : group[a] == group[b] ? inner
                                                    : outer);
    }
  }
  return links;
}

TEST(DeviceRing, KeepsFastLinksTogether) {
  const std::vector<std::string> host(4, "a");
  EXPECT_EQ(device_ring(host, grouped({0, 1, 0, 1}, DeviceLink::pci_switch, DeviceLink::package)),
            (std::vector<int>{0, 1, 3, 2}));
  EXPECT_EQ(device_ring(host, grouped({0, 1, 2, 3}, DeviceLink::same_device, DeviceLink::nvlink)),
            (std::vector<int>{0, 1, 2, 3}));
}

// Going on to the nearest rank each time gives 0, 1, 2, 3, where 3 to 0 is a host bridge; the best
// ring has only NVLinks.
TEST(DeviceRing, ClosesOverFastLinks) {
  auto links = grouped({0, 1, 2, 3}, DeviceLink::same_device, DeviceLink::host_bridge);
  const auto join = [&](int a, int b) {
    links[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = DeviceLink::nvlink;
    links[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = DeviceLink::nvlink;
  };
  join(0, 1);
  join(0, 2);
  join(1, 3);
  join(2, 3);
  join(1, 2);
  EXPECT_EQ(device_ring(std::vector<std::string>(4, "a"), links), (std::vector<int>{0, 1, 3, 2}));
}

TEST(DeviceRing, VisitsEachHostOnceAndManyRanksToo) {
  std::vector<std::string> hosts;
  std::vector<int> device;
  for (int rank = 0; rank < 24; ++rank) {
    hosts.emplace_back(rank % 2 == 0 ? "a" : "b");
    device.push_back(rank % 4);
  }
  const std::vector<int> ring =
      device_ring(hosts, grouped(device, DeviceLink::same_device, DeviceLink::nvlink));
  EXPECT_EQ(ring, (std::vector<int>{0, 4, 8, 12, 16, 20, 2, 6, 10, 14, 18, 22,
                                    1, 5, 9, 13, 17, 21, 3, 7, 11, 15, 19, 23}));
}

TEST(PciLinks, OfWhatIsNotThereAreSlow) {
  EXPECT_EQ(pci_link("0000:00:00.0", "0000:00:00.0"), DeviceLink::same_device);
  EXPECT_EQ(pci_link("ffff:ff:00.0", "ffff:fe:00.0"), DeviceLink::unknown);
}

// A machine of two sockets in hwloc's XML. The first has a host bridge with two GPUs behind a
// switch and a third beside the switch, and another host bridge with one GPU; the second has one
// GPU.
std::string two_sockets_with_gpus() {
  const auto pci = [](int bus) {
    return fmt::format(
        R"(<object type="PCIDev" gp_index="{}" pci_busid="0000:{:02x}:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="0.0"/>)",
        100 + bus, bus);
  };
  const auto host_bridge = [](int first, const std::string& inner) {
    return fmt::format(
        R"(<object type="Bridge" gp_index="{}" bridge_type="0-1" depth="0" bridge_pci="0000:[{:02x}-{:02x}]">{}</object>)",
        200 + first, first, first + 15, inner);
  };
  const auto package = [](int index, const std::string& io) {
    const std::string sets =
        fmt::format(R"(cpuset="{0}" complete_cpuset="{0}" nodeset="{0}" complete_nodeset="{0}")",
                    fmt::format("0x{:08x}", 1 << index));
    return fmt::format(
        R"(<object type="Package" os_index="{0}" {1} gp_index="1{0}"><object type="NUMANode" os_index="{0}" {1} gp_index="2{0}" local_memory="1048576"/><object type="Core" os_index="{0}" {1} gp_index="3{0}"><object type="PU" os_index="{0}" {1} gp_index="4{0}"/></object>{2}</object>)",
        index, sets, io);
  };
  const std::string two_behind_a_switch = fmt::format(
      R"(<object type="Bridge" gp_index="60" bridge_type="1-1" depth="1" bridge_pci="0000:[01-02]" pci_busid="0000:00:01.0" pci_type="0604 [10b5:8747] [10b5:8747] ca" pci_link_speed="0.0">{}{}</object>)",
      pci(1), pci(2));
  // hwloc's own parser, where libxml2 is absent, wants each header on a line.
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
         R"(<topology version="2.0"><object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">)" +
         package(0, host_bridge(0, two_behind_a_switch + pci(5)) + host_bridge(32, pci(33))) +
         package(1, host_bridge(64, pci(65))) + "</object></topology>";
}

TEST(PciLinks, AreWhatHwlocSees) {
  if (this_machine().source == "no hwloc") GTEST_SKIP() << "built without hwloc";
  const std::string file = ::testing::TempDir() + "rondo-two-sockets.xml";
  std::ofstream(file) << two_sockets_with_gpus();
  ::setenv("HWLOC_XMLFILE", file.c_str(), 1);
  const auto link = [](const char* to) { return pci_link("0000:01:00.0", to); };
  EXPECT_EQ(link("0000:02:00.0"), DeviceLink::pci_switch);
  EXPECT_EQ(link("0000:05:00.0"), DeviceLink::host_bridge);
  EXPECT_EQ(link("0000:21:00.0"), DeviceLink::package);
  EXPECT_EQ(link("0000:41:00.0"), DeviceLink::machine);
  EXPECT_EQ(link("0000:77:00.0"), DeviceLink::unknown);
  ::unsetenv("HWLOC_XMLFILE");
  std::remove(file.c_str());
}

TEST(Machine, KnowsItsCores) {
  const Machine machine = this_machine();
  EXPECT_GT(machine.cores, 0);
  EXPECT_FALSE(machine.host.empty());
  EXPECT_FALSE(machine.source.empty());
}

}  // namespace
}  // namespace rondo::detail

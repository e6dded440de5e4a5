#include "topology/ring_order.hpp"
#include "topology/device_ring.hpp"
#include "topology/machine.hpp"

#include <gtest/gtest.h>

#include <rondo/topology.hpp>

namespace rondo::detail {
namespace {

TEST(RingOrder, IsRankOrderOnOneHost) {
  EXPECT_EQ(ring_order({{"a", -1}, {"a", -1}, {"a", -1}}), (std::vector<int>{0, 1, 2}));
}

TEST(RingOrder, VisitsEachHostOnce) {
  EXPECT_EQ(ring_order({{"a", 0}, {"b", 0}, {"a", 0}, {"c", 0}, {"b", 0}, {"a", 0}}),
            (std::vector<int>{0, 2, 5, 1, 4, 3}));
}

TEST(RingOrder, VisitsEachNumaNodeOfAHostOnceAndStartsAtRankZero) {
  EXPECT_EQ(ring_order({{"a", 1}, {"a", 0}, {"a", 1}, {"a", 0}}), (std::vector<int>{0, 2, 1, 3}));
}

TEST(ScheduleEdges, AreTheRingAndTheStarWithoutRepetition) {
  const std::vector<ScheduleEdge> expected = {{{0, 2}, true},  {{2, 1}, true},  {{1, 3}, true},
                                              {{3, 0}, true},  {{2, 0}, false}, {{1, 0}, false},
                                              {{0, 1}, false}, {{0, 3}, false}};
  EXPECT_EQ(schedule_edges({0, 2, 1, 3}), expected);
  EXPECT_TRUE(schedule_edges({0}).empty());
}

// One host; ranks whose number of a group is equal are `inner` to each other, others `outer`.
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

// Nearest first would go 0, 1, 2, 3 and come back over a bridge; the best ring is of NVLinks alone.
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

TEST(Machine, KnowsItsCores) {
  const Machine machine = this_machine();
  EXPECT_GT(machine.cores, 0);
  EXPECT_FALSE(machine.host.empty());
  EXPECT_FALSE(machine.source.empty());
}

}  // namespace
}  // namespace rondo::detail

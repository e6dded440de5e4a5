// Times of calls whose length is known, and that few actors stand for many ranks.

#include "bench/sim/call.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace rondo::sim {
namespace {

constexpr double kInstantly = 1e18;
constexpr std::size_t kMiB = std::size_t{1} << 20U;

// Only the links take time.
Network links_of(double bytes_per_us) {
  Network network;
  network.link_bytes_per_us = bytes_per_us;
  network.latency_us = 0;
  network.slice_us = 0;
  network.reduce_bytes_per_us = network.copy_bytes_per_us = kInstantly;
  return network;
}

// Only the beginning of messages takes time.
Network hops_of(double latency_us, double slice_us) {
  Network network = links_of(kInstantly);
  network.latency_us = latency_us;
  network.slice_us = slice_us;
  return network;
}

double call_us(const Network& network, Strategy strategy, int ranks, std::size_t bytes) {
  return sim::call_us(network, strategy, ranks, bytes, 1);
}

TEST(Ring, FillsItsLinks) {
  for (const int ranks : {2, 4, 8}) {
    const double bound = 2.0 * (ranks - 1) / ranks * 64 * kMiB / 100;
    const double us = call_us(links_of(100), Strategy::ring, ranks, 64 * kMiB);
    EXPECT_GE(us, bound * (1 - 1e-9));
    EXPECT_LE(us, bound * 1.02) << ranks;
  }
}

// A rank begins its 7 steps as soon as the message for it has come: it works 1 us for each, and 6 messages travel.
TEST(Ring, OfFourRanksHasSixHops) {
  EXPECT_DOUBLE_EQ(call_us(hops_of(10, 1), Strategy::ring, 4, 64), 6 * 10 + 7 * 1);
}

// A rank sends, adds what comes and sends the sum on, twice, and adds what comes.
TEST(RecursiveDoubling, OfEightRanksHasThreeHops) {
  EXPECT_DOUBLE_EQ(call_us(hops_of(10, 1), Strategy::recursive_doubling, 8, 64), 3 * 10 + 4 * 1);
}

TEST(HalvingDoubling, OfEightRanksHasSixHops) {
  EXPECT_DOUBLE_EQ(call_us(hops_of(10, 1), Strategy::halving_doubling, 8, 512), 6 * (10 + 2 * 1));
}

TEST(HalvingDoubling, SendsAsManyBytesAsARing) {
  const double bound = 2.0 * 7 / 8 * 64 * kMiB / 100;
  EXPECT_NEAR(call_us(links_of(100), Strategy::halving_doubling, 8, 64 * kMiB), bound,
              bound * 0.02);
}

// All vectors enter the root's host by one link, and the sums leave by one.
TEST(Naive, WaitsForTheLinkOfItsRoot) {
  for (const int ranks : {4, 16}) {
    const double bound = (ranks - 1.0) * 64 * kMiB / 100;
    const double us = call_us(links_of(100), Strategy::naive, ranks, 64 * kMiB);
    EXPECT_GE(us, bound);
    EXPECT_LE(us, 2 * bound) << "if no sum left while vectors came";
  }
}

// While sums leave, the root's link has a pause, and then carries the next vectors at once.
TEST(Naive, FillsTheLinksThatSaveUpPauses) {
  Network network = links_of(100);
  network.burst_bytes = 256 << 10;
  const double bound = 3.0 * 4 * kMiB / 100;
  const double us = call_us(network, Strategy::naive, 4, 4 * kMiB);
  EXPECT_GE(us, bound);
  EXPECT_LE(us, bound * 1.05);
}

TEST(Hierarchical, SendsAHostsVectorOnce) {
  Network network = links_of(100);
  network.ranks_per_host = 4;
  const double bound = 2.0 * 3 / 4 * 64 * kMiB / 100;
  const double us = call_us(network, Strategy::hierarchical, 16, 64 * kMiB);
  EXPECT_GE(us, bound * (1 - 1e-9));
  EXPECT_LE(us, bound * 1.02);
}

TEST(Server, SendsWhatTheRanksOfAHostDoNotKeep) {
  Network network = links_of(100);
  network.ranks_per_host = 2;
  // Each of 2 ranks on a host sends 6 of 8 shards over the host's link, and receives as many.
  EXPECT_DOUBLE_EQ(call_us(network, Strategy::server, 8, 800), 2 * (2 * 600 / 100.0));
}

TEST(AnyStrategy, CopiesWhenItIsAlone) {
  Network network;
  network.copy_bytes_per_us = 100;
  for (int i = 0; i < kStrategies; ++i) {
    EXPECT_DOUBLE_EQ(call_us(network, static_cast<Strategy>(i), 1, 1000), 10);
  }
}

// Without jitter, the few actors take as long as all ranks: 1024 of them, or 1000 for rings.
TEST(Actors, StandForAllRanks) {
  for (const int ranks_per_host : {1, 2, 8}) {
    Network network;
    network.ranks_per_host = ranks_per_host;
    for (const Strategy strategy : {Strategy::ring, Strategy::hierarchical,
                                    Strategy::halving_doubling, Strategy::recursive_doubling}) {
      const bool round = strategy == Strategy::ring || strategy == Strategy::hierarchical;
      const int ranks = round ? 1000 : 1024;
      for (const std::size_t each : {std::size_t{16}, std::size_t{4096}}) {  // elements of a chunk
        const std::size_t bytes = each * static_cast<std::size_t>(ranks) * sizeof(float);
        const double all = sim::call_us(network, strategy, ranks, bytes, 1, 1024);
        EXPECT_NEAR(sim::call_us(network, strategy, ranks, bytes, 1, 64), all, all * 1e-3)
            << name(strategy) << ", " << ranks_per_host << " ranks a host, " << bytes << " bytes";
      }
    }
  }
}

TEST(Actors, OfARingStandForRanksWhoseMessagesAreLate) {
  Network network;
  network.jitter_us = 10;
  const double all = sim::call_us(network, Strategy::ring, 512, kMiB, 1, 512);
  EXPECT_NEAR(call_us(network, Strategy::ring, 512, kMiB), all, all * 0.02);
}

TEST(Jitter, IsTheSameWithTheSameSeed) {
  Network network;
  network.jitter_us = 10;
  const double once = sim::call_us(network, Strategy::ring, 8, kMiB, 5);
  EXPECT_EQ(sim::call_us(network, Strategy::ring, 8, kMiB, 5), once);
  EXPECT_NE(sim::call_us(network, Strategy::ring, 8, kMiB, 6), once);
  EXPECT_GT(once, call_us(Network{}, Strategy::ring, 8, kMiB));
}

TEST(Objection, SaysWhatCannotBeSimulated) {
  Network network;
  EXPECT_EQ(objection_to(Strategy::halving_doubling, network, 100), "");
  EXPECT_NE(objection_to(Strategy::halving_doubling, network, 5000).find("power of two"),
            std::string::npos);
  EXPECT_EQ(objection_to(Strategy::ring, network, 100), "");
  network.ranks_per_host = 8;
  EXPECT_NE(objection_to(Strategy::ring, network, 100).find("8 ranks each"), std::string::npos);
}

TEST(Names, AreReadAndRefused) {
  for (int i = 0; i < kStrategies; ++i) {
    EXPECT_EQ(strategy_named(name(static_cast<Strategy>(i))), static_cast<Strategy>(i));
  }
  EXPECT_THROW(strategy_named("rings"), std::runtime_error);
}

}  // namespace
}  // namespace rondo::sim

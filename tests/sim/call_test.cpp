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

TEST(Ring, FillsItsLinks) {
  for (const int ranks : {2, 4, 8}) {
    const double bound = 2.0 * (ranks - 1) / ranks * 64 * kMiB / 100;
    const double us = call_us(links_of(100), Strategy::ring, ranks, 64 * kMiB);
    EXPECT_GE(us, bound * (1 - 1e-9));
    EXPECT_LE(us, bound * 1.02) << ranks;
  }
}

// A rank begins its 7 steps as soon as the message for it has come: it works 1 us for each, and 6
// messages travel.
TEST(Ring, OfFourRanksHasSixHops) {
  EXPECT_DOUBLE_EQ(call_us(hops_of(10, 1), Strategy::ring, 4, 64), 6 * 10 + 7 * 1);
}

// A rank sends, adds what comes and sends the sum on, twice, and adds what comes.
TEST(RecursiveDoubling, OfEightRanksHasThreeHops) {
  EXPECT_DOUBLE_EQ(call_us(hops_of(10, 1), Strategy::recursive_doubling, 8, 64), 3 * 10 + 4 * 1);
}

// After half a FIFO, a message ends only with the receiver's answer, and a call ends with its
// messages: the first slice of the last step is answered after three times the latency, when the
// rank has had all its data.
TEST(RecursiveDoubling, WaitsForAnswersBetweenDistantHosts) {
  Network network = links_of(12);
  network.latency_us = 3000;
  const auto us = [&](std::size_t bytes, int calls) {
    return call_us(network, Strategy::recursive_doubling, 4, bytes, {.calls = calls});
  };
  EXPECT_DOUBLE_EQ(us(1024, 2), us(1024, 1)) << "less than half a FIFO";
  const std::size_t half = 32768;
  EXPECT_LT(us(half, 1), 2 * 3000 + 1.5 * half / 12) << "the first call has nothing before it";
  EXPECT_GT(us(half, 2), 3 * 3000);
  EXPECT_LT(us(half, 2), 3 * 3000 + half / 12.0);
}

// Where bytes cost nothing, halving saves nothing.
TEST(HalvingDoubling, OfEightRanksHalvesAsOftenAsPays) {
  EXPECT_DOUBLE_EQ(call_us(hops_of(10, 1), Strategy::halving_doubling, 8, 512), 3 * (10 + 2 * 1));
  Network network = hops_of(10, 1);
  network.link_bytes_per_us = 10;
  // It halves once: 4 hops, and twice 256 bytes in the first exchange and the last, and in between.
  EXPECT_NEAR(call_us(network, Strategy::halving_doubling, 8, 512), 4 * (10 + 2 * 1) + 4 * 25.6, 1);
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

// One server takes the vectors of all other hosts over its link, and sends as many.
TEST(Server, WaitsForTheLinkOfTheOnlyOne) {
  Network network = links_of(100);
  network.servers = 1;
  EXPECT_DOUBLE_EQ(call_us(network, Strategy::server, 5, 1000), 2 * 4 * 1000 / 100.0);
  network.servers = 3;  // on hosts with two ranks each: two servers on one of them
  network.ranks_per_host = 2;
  EXPECT_DOUBLE_EQ(call_us(network, Strategy::server, 4, 1200), 2 * (2 * 400 * 2 / 100.0));
}

// The link of the only server rests one way while it carries the other way; those of hosts with a
// rank and a server never do.
TEST(Server, LinksOfTokenBucketsSaveOnlyTheirPauses) {
  Network network = links_of(100);
  network.burst_bytes = 500;
  EXPECT_DOUBLE_EQ(call_us(network, Strategy::server, 4, 800), 2 * (3 * 200 / 100.0));
  network.servers = 1;
  EXPECT_DOUBLE_EQ(call_us(network, Strategy::server, 4, 800), 2 * (3 * 800 - 500) / 100.0);
  network.burst_bytes = 1e6;
  // It saves while it rests, which is as long as it carries the other half.
  EXPECT_DOUBLE_EQ(call_us(network, Strategy::server, 4, 800), 2 * 1200 / 100.0);
}

TEST(Server, IsNeverAloneWithLessThanAnElement) {
  EXPECT_EQ(servers_of({}, 8, 400), 8);
  EXPECT_EQ(servers_of({}, 8, 12), 3);
  EXPECT_EQ(servers_of({}, 8, 0), 1);
}

// A pause that a link has saved up makes it as fast as a link without end, and not faster.
TEST(AnyStrategy, IsNotFasterThanItsMessages) {
  Network bursts = hops_of(100, 1);
  const Network endless = bursts;
  bursts.link_bytes_per_us = 100;
  bursts.burst_bytes = 1e12;
  for (const Strategy strategy : {Strategy::ring, Strategy::halving_doubling,
                                  Strategy::recursive_doubling, Strategy::naive}) {
    // The window and the slices of a call depend on the link: one slice has none.
    const double least = call_us(endless, strategy, 8, 64);
    EXPECT_GE(call_us(bursts, strategy, 8, 64), least * (1 - 1e-9)) << name(strategy);
  }
}

// The vectors of the next call come to the root while sums of the last one leave, from when the
// first rank has its sum: 8 of the times that a vector takes on a link, where a call alone takes 7
// for the vectors and 7 for the sums, but for what overlaps by slices.
TEST(Calls, ByTheRootComeWhileTheOnesBeforeLeave) {
  const Network network = links_of(100);
  const double vector_us = 256.0 * 1024 / 100;
  const double alone = call_us(network, Strategy::naive, 8, 256 << 10U);
  const double each = sim::call_us(network, Strategy::naive, 8, 256 << 10U, {.calls = 8});
  EXPECT_GT(alone, 8.5 * vector_us);
  EXPECT_NEAR(each, 8 * vector_us, 0.01 * vector_us);
}

// A rank of a ring ends its call last, and needs all others for the next.
TEST(Calls, OfARingOneAfterTheOtherTakeAsLongAsAlone) {
  const double alone = call_us(hops_of(10, 1), Strategy::ring, 4, 64);
  EXPECT_DOUBLE_EQ(sim::call_us(hops_of(10, 1), Strategy::ring, 4, 64, {.calls = 6}), alone);
}

// Without jitter, the few actors take as long as all ranks: 256 of them, or 250 for rings.
TEST(Actors, StandForAllRanks) {
  for (const int ranks_per_host : {1, 2, 8, 32}) {
    Network network;
    network.ranks_per_host = ranks_per_host;
    for (const Strategy strategy : {Strategy::ring, Strategy::hierarchical,
                                    Strategy::halving_doubling, Strategy::recursive_doubling}) {
      const int ranks = strategy == Strategy::ring && ranks_per_host <= 2 ? 250 : 256;
      for (const std::size_t each : {std::size_t{16}, std::size_t{4096}}) {  // elements of a chunk
        const std::size_t bytes = each * static_cast<std::size_t>(ranks) * sizeof(float);
        const double all = sim::call_us(network, strategy, ranks, bytes, {.most_actors = 256});
        // Owners of a host share its link; in which order their slices come to it may differ.
        const double part = strategy == Strategy::hierarchical ? 5e-3 : 1e-3;
        EXPECT_NEAR(sim::call_us(network, strategy, ranks, bytes, {.most_actors = 64}), all,
                    all * part)
            << name(strategy) << ", " << ranks_per_host << " ranks a host, " << bytes << " bytes";
      }
    }
  }
}

TEST(Actors, OfARingStandForRanksWhoseMessagesAreLate) {
  Network network;
  network.jitter_us = 10;
  const double all = sim::call_us(network, Strategy::ring, 512, kMiB, {.most_actors = 512});
  EXPECT_NEAR(call_us(network, Strategy::ring, 512, kMiB), all, all * 0.02);
}

TEST(Jitter, IsTheSameWithTheSameSeed) {
  Network network;
  network.jitter_us = 10;
  const double once = sim::call_us(network, Strategy::ring, 8, kMiB, {.seed = 5});
  EXPECT_EQ(sim::call_us(network, Strategy::ring, 8, kMiB, {.seed = 5}), once);
  EXPECT_NE(sim::call_us(network, Strategy::ring, 8, kMiB, {.seed = 6}), once);
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

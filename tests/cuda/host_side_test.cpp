// What the host decides of a rank's device without asking it: which calls of others count, how much
// memory is shown, and how many blocks a call has.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "cuda/engine/call_arguments.hpp"
#include "cuda/engine/control_segment.hpp"
#include "cuda/engine/failure_text.hpp"
#include "cuda/joining/shown_memory.hpp"
#include "cuda/protocol/control.hpp"
#include "cuda/protocol/one_shot.hpp"
#include "memory/shared_memory.hpp"

namespace rondo::test {
namespace {

using namespace detail::gpu;
using detail::Signature;

DeviceWiring two_ranks() {
  constexpr int kBlocks = 1;
  DeviceWiring wiring;
  wiring.ranks_sharing = {0, 1};
  PinnedMapping memory(0, detail::map_private(ControlSegment::bytes_for(2, kBlocks, {})));
  wiring.control = ControlSegment(std::move(memory), 2, kBlocks, {});
  return wiring;
}

Signature call_of(std::uint64_t sequence, std::uint64_t count) {
  Signature signature;
  signature.sequence = sequence;
  signature.count = count;
  return signature;
}

TEST(ShownCall, TwoCallsOfOneNumberThatDifferAreSeen) {
  const DeviceWiring wiring = two_ranks();
  announce(wiring.control.on_device(0), call_of(4, 100));
  EXPECT_EQ(other_call_at_the_same_time(wiring, 0), std::nullopt);
  announce(wiring.control.on_device(1), call_of(3, 200));
  EXPECT_EQ(other_call_at_the_same_time(wiring, 0), std::nullopt);
  announce(wiring.control.on_device(1), call_of(4, 200));
  const OtherCall expected{1, call_of(4, 100), call_of(4, 200)};
  EXPECT_EQ(other_call_at_the_same_time(wiring, 0), expected);
}

// The words of a call arrive one by one: here the number of calls before the signature, on one rank
// and then on the other.
TEST(ShownCall, ACallThatIsBeingShownDoesNotCount) {
  const DeviceWiring wiring = two_ranks();
  announce(wiring.control.on_device(0), call_of(5, 100));
  announce(wiring.control.on_device(1), call_of(4, 100));
  wiring.control.presence(1).calls = 6;
  for (const int rank : {0, 1}) EXPECT_EQ(other_call_at_the_same_time(wiring, rank), std::nullopt);
  announce(wiring.control.on_device(1), call_of(5, 200));
  for (const int rank : {0, 1}) EXPECT_TRUE(other_call_at_the_same_time(wiring, rank));
}

TEST(Blocks, OfDirectHaveFourKibibytesEach) {
  DeviceGeometry geometry;
  geometry.size = 8;
  geometry.channels = 64;
  Call call;
  call.collective = Collective::all_reduce;
  call.type = DataType::f32;
  constexpr std::uint64_t kKibibyte = 1024;
  const auto blocks_of = [&](std::uint64_t bytes, Algorithm algorithm) {
    call.count = bytes / 4;
    return blocks_for(call, algorithm, 0, geometry).channels;
  };
  EXPECT_EQ(blocks_of(4, Algorithm::direct), 1);
  EXPECT_EQ(blocks_of(kKibibyte * 128, Algorithm::direct), 4);
  EXPECT_EQ(blocks_of(kKibibyte * 128 + 4, Algorithm::direct), 5);
  EXPECT_EQ(blocks_of(kKibibyte * 128, Algorithm::ring), 1);
  EXPECT_EQ(blocks_of(kKibibyte * 65536, Algorithm::direct), 64);
}

// A thread exchanges one unit, and the signature takes three of the units of 256 threads.
TEST(Blocks, OfOneShotExchangeTheirPartInOneRound) {
  DeviceGeometry geometry;
  geometry.size = 2;
  geometry.channels = 64;
  for (std::uint64_t count = 0; count <= 20000; count += 501) {
    Call call;
    call.collective = Collective::all_reduce;
    call.type = DataType::f32;
    call.count = count;
    const CallBlocks blocks = blocks_for(call, Algorithm::one_shot, 0, geometry);
    ASSERT_LT(blocks.channels, geometry.channels);
    const std::vector<int> ring = {0, 1};
    detail::RingPlace place;
    place.size = 2;
    place.ring = &ring;
    detail::PlannedCall planned;
    planned.call = call;
    planned.algorithm = Algorithm::one_shot;
    const KernelArguments arguments = call_arguments(planned, place, RankView(), blocks);
    const std::uint64_t units =
        kHeaderUnits + (arguments.one_shot_part * 4 + kUnitBytes - 1) / kUnitBytes;
    EXPECT_LE(units, 256U) << count;
    EXPECT_GE(arguments.one_shot_part * static_cast<std::uint64_t>(blocks.channels), count);
  }
}

TEST(ShownMemory, HasPagesOfItsOwn) {
  constexpr std::size_t kPage = std::size_t{2} << 20U;
  const auto small = allocate_to_show(0, 100);
  EXPECT_TRUE(small->holds(small->data() + kPage - 1));
  EXPECT_FALSE(small->holds(small->data() + kPage));
  const auto whole = allocate_to_show(0, kPage);
  EXPECT_FALSE(whole->holds(whole->data() + kPage));
  const auto more = allocate_to_show(0, kPage + 1);
  EXPECT_TRUE(more->holds(more->data() + 2 * kPage - 1));
}

}  // namespace
}  // namespace rondo::test

// What a rank's device shows to the hosts and to other ranks: its last call, and its memory.

#include <cstddef>
#include <optional>

#include <gtest/gtest.h>

#include "carrier/memory.hpp"
#include "engine/control_segment.hpp"
#include "engine/failure_text.hpp"
#include "joining/shown_memory.hpp"
#include "protocol/control.hpp"

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

// The words of a call arrive one by one: here the number of calls before the signature, on one rank and then on the other.
TEST(ShownCall, ACallThatIsBeingShownDoesNotCount) {
  const DeviceWiring wiring = two_ranks();
  announce(wiring.control.on_device(0), call_of(5, 100));
  announce(wiring.control.on_device(1), call_of(4, 100));
  wiring.control.presence(1).calls = 6;
  for (const int rank : {0, 1}) EXPECT_EQ(other_call_at_the_same_time(wiring, rank), std::nullopt);
  announce(wiring.control.on_device(1), call_of(5, 200));
  for (const int rank : {0, 1}) EXPECT_TRUE(other_call_at_the_same_time(wiring, rank));
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

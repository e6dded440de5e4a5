// What a rank shows while it goes from call to call.

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "carrier/presence.hpp"

namespace rondo::detail {
namespace {

ShownCall shown(std::uint64_t sequence) {
  Signature signature;
  signature.sequence = sequence;
  signature.count = sequence * 3;
  signature.root = static_cast<std::int32_t>(sequence % 1000);
  return {signature, {sequence * 5, sequence * 7}};
}

bool is_shown(const std::optional<ShownCall>& call, std::uint64_t sequence) {
  const ShownCall expected = shown(sequence);
  return call && call->signature == expected.signature && call->buffers.in == expected.buffers.in &&
         call->buffers.out == expected.buffers.out;
}

TEST(Presence, TellsTheCallThatItsOwnerIsIn) {
  Presence presence;
  EXPECT_FALSE(presence.has_entered(0));
  EXPECT_FALSE(presence.call(0));
  presence.enter(shown(0));
  EXPECT_TRUE(presence.has_entered(0));
  EXPECT_FALSE(presence.has_ended(0));
  EXPECT_TRUE(is_shown(presence.call(0), 0));
  EXPECT_FALSE(presence.call(1));
  presence.end(0);
  EXPECT_TRUE(presence.has_ended(0));
  EXPECT_FALSE(presence.has_confirmed(0));
  presence.confirm(0);
  EXPECT_TRUE(presence.has_confirmed(0));
  EXPECT_FALSE(presence.has_confirmed(1));
  EXPECT_FALSE(presence.left_before(1));
  presence.leave();
  EXPECT_FALSE(presence.left_before(0));
  EXPECT_TRUE(presence.left_before(1));
}

TEST(Presence, TellsWhenItsOwnerTouchesTheBuffersOfOthers) {
  Presence presence;
  EXPECT_FALSE(presence.is_touching(0));
  EXPECT_FALSE(presence.has_touched(0));
  for (const std::uint64_t call : {0U, 1U, 7U}) {
    EXPECT_FALSE(presence.has_touched(call));
    presence.begin_touching(call);
    EXPECT_TRUE(presence.is_touching(call));
    EXPECT_FALSE(presence.has_touched(call));
    presence.renounce_touching(call);
    EXPECT_FALSE(presence.is_touching(call));
    EXPECT_FALSE(presence.has_touched(call));
    presence.begin_touching(call);
    presence.end_touching(call);
    EXPECT_FALSE(presence.is_touching(call));
    EXPECT_TRUE(presence.has_touched(call));
  }
}

// A reader that looks while the words change must discard them.
TEST(Presence, NeverTellsHalfOfTwoCalls) {
  constexpr std::uint64_t kCalls = 300'000;
  Presence presence;
  std::atomic<bool> over = false;
  std::thread owner([&] {
    for (std::uint64_t call = 0; call < kCalls; ++call) presence.enter(shown(call));
    over = true;
  });
  std::uint64_t wrong = 0;
  std::uint64_t at = 0;
  while (!over) {
    const auto call = presence.call(at);
    if (call && !is_shown(call, at)) ++wrong;
    while (presence.has_entered(at + 1)) ++at;
  }
  owner.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_TRUE(is_shown(presence.call(kCalls - 1), kCalls - 1));
}

}  // namespace
}  // namespace rondo::detail

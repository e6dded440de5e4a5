// What a rank shows while it goes from call to call.

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "carrier/presence.hpp"

namespace rondo::detail {
namespace {

Signature signature_of(std::uint64_t sequence) {
  Signature signature;
  signature.sequence = sequence;
  signature.count = sequence * 3;
  signature.root = static_cast<std::int32_t>(sequence % 1000);
  return signature;
}

TEST(Presence, TellsTheCallThatItsOwnerIsIn) {
  Presence presence;
  EXPECT_FALSE(presence.has_entered(0));
  EXPECT_FALSE(presence.call(0));
  presence.enter(signature_of(0));
  EXPECT_TRUE(presence.has_entered(0));
  EXPECT_FALSE(presence.has_ended(0));
  EXPECT_EQ(presence.call(0), signature_of(0));
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

// A reader that looks while the words change must discard them.
TEST(Presence, NeverTellsHalfOfTwoCalls) {
  constexpr std::uint64_t kCalls = 300'000;
  Presence presence;
  std::atomic<bool> over = false;
  std::thread owner([&] {
    for (std::uint64_t call = 0; call < kCalls; ++call) presence.enter(signature_of(call));
    over = true;
  });
  std::uint64_t wrong = 0;
  std::uint64_t at = 0;
  while (!over) {
    const auto call = presence.call(at);
    if (call && *call != signature_of(at)) ++wrong;
    while (presence.has_entered(at + 1)) ++at;
  }
  owner.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(presence.call(kCalls - 1), signature_of(kCalls - 1));
}

}  // namespace
}  // namespace rondo::detail

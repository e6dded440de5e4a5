// What a receiver compares before it believes a slot.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "engine/host_port.hpp"
#include "joining/wire.hpp"
#include "tests/support/asleep.hpp"

namespace rondo::detail {
namespace {

// Rank 1 of two, in call `own`. Rank 0 has sent it one slot.
class Receiver {
 public:
  Receiver(const Signature& sent, std::uint64_t sent_bytes, const Signature& own)
      : group_(wire_local_group(2, {})), context_(group_[1]) {
    publish_from_0(sent, sent_bytes);
    context_.waiter.begin_call(own, std::chrono::seconds(60), false);
    call_.signature = own;
    call_.element_bytes = sizeof(float);
    call_.kernel = vector_kernel(DataType::f32, ReduceOp::sum);
    call_.plan.ring = &group_[1].topology.ring;
  }
  void publish_from_0(const Signature& sent, std::uint64_t sent_bytes) {
    SendEnd& end = group_[0].links.to[1];
    EXPECT_TRUE(end.can_acquire());
    end.slot()->signature = sent;
    end.slot()->bytes = sent_bytes;
    end.publish();
  }
  HostPort& port() { return port_; }
  [[nodiscard]] Bell& bell_of(int rank) const { return group_[1].links.segment->bell(rank); }

 private:
  std::vector<Wiring> group_;
  Context context_;
  HostCall call_;
  HostPort port_{context_, call_};
};

constexpr Step kReceive = recv_greeting(0);

// Whether the receiver accepts the slot as the next one of its own call.
bool takes(const Signature& sent, std::uint64_t sent_bytes, const Signature& own,
           const Range& slice) {
  Receiver receiver(sent, sent_bytes, own);
  try {
    return receiver.port().acquire(kReceive, slice);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.cause, Cause::other_call);
    EXPECT_EQ(failure.peer, 0);
    return false;
  }
}

TEST(HostPort, RingsForWhoMayWaitForAFreeSlot) {
  Receiver receiver({}, 0, {});
  ASSERT_TRUE(receiver.port().acquire(kReceive, {}));
  const test::SleeperOn sleeper(receiver.bell_of(0));
  receiver.port().hand_on(kReceive, {});
}

// A message of a communicator with another session, before that of this one.
TEST(HostPort, PassesOverMessagesOfEarlierCommunicators) {
  Signature own = signature_of_message(0, first_message(0), 10, DataType::f32);
  Signature other = own;
  other.sequence |= std::uint64_t{7} << 32U;
  Receiver receiver(other, 40, own);
  receiver.publish_from_0(own, 40);
  EXPECT_TRUE(receiver.port().acquire(kReceive, {0, 10}));
  other.sequence = own.sequence + 1;  // a later message of this communicator
  EXPECT_FALSE(takes(other, 40, own, {0, 10}));
}

// After 2^32 messages the numbers begin again, and the upper half stays that of the communicator.
TEST(Message, NumbersBeginAgain) {
  const std::uint64_t first = first_message(std::uint64_t{7} << 32U);
  EXPECT_EQ(number_after(first), first + 1);
  EXPECT_EQ(number_after(first + 0xffffffff), first);
}

TEST(HostPort, TakesWhatItExpectsAlone) {
  Signature own;
  own.sequence = 7;
  own.count = 100;
  own.root = 1;
  own.collective = static_cast<std::uint8_t>(Collective::broadcast);
  EXPECT_TRUE(takes(own, 40, own, {0, 10}));
  EXPECT_FALSE(takes(own, 36, own, {0, 10})) << "another size";
  EXPECT_FALSE(takes(own, 0, own, {0, 10})) << "a greeting";
  EXPECT_TRUE(takes(own, 0, own, {})) << "a greeting";
  const auto other = [&](auto&& change) {
    Signature sent = own;
    change(sent);
    return sent;
  };
  for (const Signature& sent :
       {other([](Signature& s) { ++s.sequence; }), other([](Signature& s) { ++s.count; }),
        other([](Signature& s) { ++s.root; }), other([](Signature& s) { ++s.collective; }),
        other([](Signature& s) { ++s.algorithm; }), other([](Signature& s) { ++s.type; }),
        other([](Signature& s) { ++s.op; })}) {
    EXPECT_FALSE(takes(sent, 40, own, {0, 10}));
  }
}

// A call in which rank 1 of two combines what rank 0 sends with its own elements, and sends the
// result back.
struct Reduced {
  std::uint8_t verb = 0;
  bool non_temporal = false;
  bool in_place = false;
  std::optional<DataType> alike_nans_of;
};

// Makes so many slices that both kinds of stores are used for the slots.
void expect_sums(const Reduced& reduced) {
  constexpr std::uint64_t kSlices = 60;
  std::vector<Wiring> group = wire_local_group(2, {});
  Context context(group[1]);
  const std::uint64_t most_elems = group[1].links.ring_geometry.slot_bytes / sizeof(float);
  std::vector<float> in(kSlices * 1000 + most_elems);
  std::vector<float> other(in.size());
  HostCall call;
  std::vector<float>& out = reduced.in_place ? in : other;
  call.in = reinterpret_cast<const std::byte*>(in.data());
  call.out = reinterpret_cast<std::byte*>(out.data());
  call.element_bytes = sizeof(float);
  call.kernel = vector_kernel(DataType::f32, ReduceOp::sum);
  call.plan.ring = &group[1].topology.ring;
  call.non_temporal = reduced.non_temporal;
  call.alike_nans_of = reduced.alike_nans_of;
  HostPort port(context, call);
  context.waiter.begin_call(call.signature, std::chrono::seconds(60), false);
  for (std::uint64_t i = 0; i < kSlices; ++i) {
    // They end within a piece, and have another length each.
    const Range slice{i * 1000, most_elems - i};
    std::iota(in.begin() + static_cast<std::ptrdiff_t>(slice.offset), in.end(), 1.0F);
    SendEnd& sender = group[0].links.to[1];
    ASSERT_TRUE(sender.can_acquire());
    sender.slot()->signature = call.signature;
    sender.slot()->bytes = slice.count * sizeof(float);
    auto* const sent = reinterpret_cast<float*>(payload(sender.slot()));
    for (std::uint64_t k = 0; k < slice.count; ++k) sent[k] = static_cast<float>(3 * k + i);
    sender.publish();
    const Step step{reduced.verb, 0, 0, 0};
    ASSERT_TRUE(port.acquire(step, slice));
    port.move(step, slice);
    port.hand_on(step, slice);
    RecvEnd& receiver = group[0].links.from[1];
    ASSERT_TRUE(receiver.can_peek());
    const auto* const sum = reinterpret_cast<const float*>(payload(receiver.slot()));
    for (std::uint64_t k = 0; k < slice.count; ++k) {
      const auto expected = static_cast<float>(3 * k + i + k + 1);
      ASSERT_EQ(sum[k], expected) << k << " of slice " << i;
      if (step.has(kCopy)) {
        ASSERT_EQ(out[slice.offset + k], expected) << k << " of slice " << i;
      }
    }
    receiver.release();
  }
}

TEST(HostPort, SumsAreTheSameByAllStores) {
  for (const std::uint8_t first : {std::uint8_t{0}, std::uint8_t{kMineFirst}}) {
    const auto verb = [&](std::uint8_t parts) { return static_cast<std::uint8_t>(parts | first); };
    for (const bool non_temporal : {false, true}) {
      expect_sums({verb(kRecvReduceSend), non_temporal, false, {}});
      expect_sums({verb(kRecvReduceCopySend), non_temporal, false, {}});
      expect_sums({verb(kRecvReduceCopySend), non_temporal, false, DataType::f32});
    }
    expect_sums({verb(kRecvReduceCopySend), false, true, {}});
  }
}

}  // namespace
}  // namespace rondo::detail

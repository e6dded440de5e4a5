// What a receiver compares before it believes a slot.

#include <gtest/gtest.h>

#include "communicator/wiring.hpp"
#include "engine/host_port.hpp"

namespace rondo::detail {
namespace {

// Whether rank 1 of two takes a slot that rank 0 sends, with this signature and size, for the next of its call.
bool takes(const Signature& sent, std::uint64_t sent_bytes, const Signature& own,
           const Range& slice) {
  std::vector<Wiring> group = wire_local_group(2, {});
  SendEnd& end = group[0].to[1];
  EXPECT_TRUE(end.can_acquire());
  end.slot()->signature = sent;
  end.slot()->bytes = sent_bytes;
  end.publish();
  Wiring& wiring = group[1];
  Waiter waiter({wiring.segment.get(), wiring.rank, &wiring.ranks_sharing, &wiring.peers, nullptr,
                 &wiring.topology.ring, &wiring.from, wiring.crowded, wiring.nap});
  waiter.begin_call(own, std::chrono::seconds(60), false);
  const HostCall call{own, {}, sizeof(float), vector_kernel(DataType::f32, ReduceOp::sum)};
  HostPort port(wiring, waiter, call);
  const bool taken = port.wait_received(0, slice);
  if (!taken) {
    EXPECT_EQ(port.stop().result, WaitResult::other_call);
    EXPECT_EQ(port.stop().peer, 0);
  }
  return taken;
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

}  // namespace
}  // namespace rondo::detail

// The stages of a host, where it has more ranks than there are rails.

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bench/exact_values.hpp"
#include "engine/call_text.hpp"
#include "engine/inside.hpp"
#include "joining/wire.hpp"

namespace rondo::detail {
namespace {

// Three ranks whose segment has stages of 256 bytes each.
struct GroupWithRails {
  std::vector<Wiring> wirings;
  std::shared_ptr<HostSegment> of_fifos;  // the segment in which their FIFOs are
};

GroupWithRails group_with_rails(int rails) {
  std::vector<Wiring> group = wire_local_group(3, {});
  auto of_fifos = group[0].links.segment;
  const SegmentPlan plan{3, 0, {}, 3, 256};
  const auto segment = std::make_shared<HostSegment>(map_private(plan.bytes()), plan);
  for (Wiring& wiring : group) {
    wiring.links.segment = segment;
    wiring.links.rails = rails;
  }
  return {std::move(group), std::move(of_fifos)};
}

class InsideOfRails : public testing::TestWithParam<int> {};

TEST_P(InsideOfRails, EachOwnerGetsItsChunkAndAllGetAll) {
  GroupWithRails group = group_with_rails(GetParam());
  std::vector<std::thread> threads;
  for (Wiring& wiring : group.wirings) {
    threads.emplace_back([&wiring] {
      Waiter waiter(wiring);
      Inside inside(wiring, waiter);
      EXPECT_EQ(inside.owns(), wiring.rank < wiring.links.rails);
      std::uint64_t sequence = 0;
      for (const std::size_t count : {0U, 1U, 17U, 500U, 64U}) {
        std::vector<int> in(count);
        std::vector<int> out(count);
        for (std::size_t i = 0; i < count; ++i) {
          in[i] = exact::input<int>(ReduceOp::sum, wiring.rank, 3, i);
        }
        const Call call{.collective = Collective::all_reduce,
                        .in = in.data(),
                        .out = out.data(),
                        .count = count,
                        .type = DataType::i32};
        Signature signature = signature_of(call, Algorithm::hierarchical);
        signature.sequence = sequence++;
        wiring.links.segment->presence(wiring.rank).enter({signature, {}});
        waiter.begin_call(signature, std::chrono::minutes(5), false);
        ASSERT_TRUE(inside.meet(signature));
        ASSERT_TRUE(inside.reduce(call, ReduceOp::sum));
        ASSERT_TRUE(inside.spread(call));
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(out[i], exact::result<int>(ReduceOp::sum, 3, i)) << i << " of " << count;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Rails, InsideOfRails, testing::Values(1, 2, 3));

}  // namespace
}  // namespace rondo::detail

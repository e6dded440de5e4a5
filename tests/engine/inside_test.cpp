// Inside a host, through stages and by access to all buffers, where it has more ranks than there
// are rails.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bench/exact_values.hpp"
#include "engine/direct.hpp"
#include "engine/inside.hpp"
#include "joining/wire.hpp"
#include "plan/call_signature.hpp"
#include "tests/support/asleep.hpp"

namespace rondo::detail {
namespace {

// Ranks whose segment has stages of which a pass takes 256 bytes.
struct GroupWithRails {
  std::vector<Wiring> wirings;
  std::shared_ptr<HostSegment> of_fifos;  // the segment in which their FIFOs are
};

GroupWithRails group_with_rails(int ranks, int rails) {
  std::vector<Wiring> group = wire_local_group(ranks, {});
  auto of_fifos = group[0].links.segment;
  const SegmentPlan plan{ranks, 0, {}, ranks, 1024};
  const auto segment = std::make_shared<HostSegment>(map_private(plan.bytes()), plan);
  for (Wiring& wiring : group) {
    wiring.links.segment = segment;
    wiring.links.rails = rails;
  }
  return {std::move(group), std::move(of_fifos)};
}

// Rails, and whether the ranks show their buffers.
class InsideOfRails : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  [[nodiscard]] static int rails() { return std::get<0>(GetParam()); }
  // Enters call number `sequence`.
  static ShownCall enter(Context& context, const Call& call, std::uint64_t sequence) {
    const Wiring& wiring = context.wiring;
    ShownCall shown{signature_of(call, Algorithm::hierarchical, wiring.size), {}};
    shown.signature.sequence = sequence;
    if (std::get<1>(GetParam())) shown.buffers = locations_of(wiring, call);
    context.presence(wiring.rank).enter(shown);
    context.begin_call(call, shown.signature, std::chrono::minutes(5));
    return shown;
  }
};

// When a piece is reduced, an owner changes the sign of its chunk, in place of a network. `eager`:
// it does all the work that it can before that; else only what the piece needs.
void call_in_pieces(Inside& inside, int rank, const Call& call, const ShownCall& shown,
                    bool eager) {
  int* values = static_cast<int*>(call.out);
  inside.meet(shown);
  for (std::uint64_t piece = 0; piece < inside.pieces(); ++piece) {
    inside.require_reduced(piece);
    while (eager && inside.work()) {
    }
    if (!inside.owns()) continue;
    const Range chunk = inside.chunk(piece);
    for (std::uint64_t i = chunk.offset; i < chunk.offset + chunk.count; ++i) {
      ASSERT_EQ(values[i], exact::result<int>(ReduceOp::sum, 3, i)) << i << " of " << rank;
      values[i] = -values[i];
    }
    inside.note_final(piece);
    std::this_thread::yield();
  }
  inside.finish();
}

TEST_P(InsideOfRails, EachOwnerGetsItsChunkAndAllGetAll) {
  GroupWithRails group = group_with_rails(3, rails());
  std::vector<std::thread> threads;
  for (Wiring& wiring : group.wirings) {
    threads.emplace_back([&wiring] {
      Context context(wiring);
      Inside inside(context);
      std::uint64_t sequence = 0;
      // A pass takes 64 elements, so that a piece takes one pass, or several.
      for (const std::size_t count : {0U, 1U, 17U, 64U, 500U, 9000U}) {
        for (const std::uint64_t most_elems : {0U, 16U, 300U, 10000U}) {
          std::vector<int> inputs(count);
          for (std::size_t i = 0; i < count; ++i) {
            inputs[i] = exact::input<int>(ReduceOp::sum, wiring.rank, 3, i);
          }
          const bool in_place = sequence % 2 == 0;
          std::vector<int> values = in_place ? inputs : std::vector<int>(count);
          const Call call{.collective = Collective::all_reduce,
                          .in = in_place ? values.data() : inputs.data(),
                          .out = values.data(),
                          .count = count,
                          .type = DataType::i32};
          const ShownCall shown = enter(context, call, sequence++);
          inside.begin(call, ReduceOp::sum, {}, rails(), true, most_elems);
          EXPECT_EQ(inside.owns(), wiring.rank < rails());
          call_in_pieces(inside, wiring.rank, call, shown, wiring.rank == 1);
          for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(values[i], -exact::result<int>(ReduceOp::sum, 3, i)) << i << " of " << count;
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Rails, InsideOfRails,
                         testing::Combine(testing::Values(1, 2, 3), testing::Bool()),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) ? "_reached" : "_by_stages");
                         });

// Both ranks touch each other's buffers when the call fails, say because a rank of another host has
// ended.
TEST(InsideAHost, NoRankReturnsFromAFailedCallWhileAnotherTouchesItsBuffers) {
  GroupWithRails with_rails = group_with_rails(2, 1);
  std::vector<Wiring>& group = with_rails.wirings;
  std::vector<float> buffers[2] = {std::vector<float>(1000), std::vector<float>(1000)};
  std::vector<Call> calls(2);
  std::vector<ShownCall> shown(2);
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<Inside>> insides;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    calls[rank] = {.collective = Collective::all_reduce,
                   .in = buffers[rank].data(),
                   .out = buffers[rank].data(),
                   .count = buffers[rank].size()};
    contexts.push_back(std::make_unique<Context>(group[rank]));
    shown[rank] = {signature_of(calls[rank], Algorithm::hierarchical, 2),
                   locations_of(group[rank], calls[rank])};
    contexts[rank]->presence(group[rank].rank).enter(shown[rank]);
    contexts[rank]->begin_call(calls[rank], shown[rank].signature, std::chrono::minutes(5));
    insides.push_back(std::make_unique<Inside>(*contexts[rank]));
    insides[rank]->begin(calls[rank], ReduceOp::sum, {}, 1, false, 0);
  }
  for (std::size_t rank = 0; rank < 2; ++rank) insides[rank]->meet(shown[rank]);
  group[0].links.segment->board().raise(1, "the test ends it");
  std::atomic<bool> returned = false;
  std::atomic<pid_t> id = 0;
  std::thread failed([&] {
    id = ::gettid();
    contexts[1]->touching.renounce();
    contexts[1]->touching.withdraw();
    returned = true;
  });
  while (!returned && !test::is_asleep(id)) std::this_thread::yield();
  EXPECT_FALSE(returned);
  contexts[0]->touching.renounce();
  contexts[0]->touching.withdraw();
  failed.join();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_FALSE(group[0].links.segment->presence(rank).has_touched(0))
        << "the others would take the part of rank " << rank << " as done";
  }
}

}  // namespace
}  // namespace rondo::detail

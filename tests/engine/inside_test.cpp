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
#include "engine/run_schedule.hpp"
#include "joining/wire.hpp"
#include "plan/call_signature.hpp"
#include "tests/support/asleep.hpp"

namespace rondo::detail {
namespace {

// Ranks whose segment has stages of 256 bytes each.
struct GroupWithRails {
  std::vector<Wiring> wirings;
  std::shared_ptr<HostSegment> of_fifos;  // the segment in which their FIFOs are
};

GroupWithRails group_with_rails(int ranks, int rails) {
  std::vector<Wiring> group = wire_local_group(ranks, {});
  auto of_fifos = group[0].links.segment;
  const SegmentPlan plan{ranks, 0, {}, ranks, 256};
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

TEST_P(InsideOfRails, EachOwnerGetsItsChunkAndAllGetAll) {
  GroupWithRails group = group_with_rails(3, rails());
  std::vector<std::thread> threads;
  for (Wiring& wiring : group.wirings) {
    threads.emplace_back([&wiring] {
      Context context(wiring);
      Inside inside(context);
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
        const ShownCall shown = enter(context, call, sequence++);
        inside.begin(call, ReduceOp::sum, {}, rails(), std::nullopt);
        EXPECT_EQ(inside.owns(), wiring.rank < rails());
        inside.meet(shown);
        inside.finish();
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(out[i], exact::result<int>(ReduceOp::sum, 3, i)) << i << " of " << count;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A rail without a network, which changes the sign of the sums over the host's ranks when it makes
// them final.
class NegatingRail {
 public:
  // `chunk`: of the owner's chunk, which begins at element `offset`.
  // `eager`: does all the work that it can before each slice; else only what the slice needs.
  NegatingRail(Inside& inside, int* chunk, std::uint64_t offset, bool eager)
      : inside_(inside), chunk_(chunk), offset_(offset), eager_(eager) {}
  static std::uint64_t chunk_at(int position) { return static_cast<std::uint64_t>(position); }
  bool acquire(const Step& step, const Range& slice) {
    while (eager_ && inside_.work()) {
    }
    std::this_thread::yield();
    if (reads_input(step)) inside_.require_reduced(step.chunk, slice);
    return true;
  }
  void move(const Step& step, const Range& slice) {
    for (std::uint64_t i = slice.offset; i < slice.offset + slice.count; ++i) {
      if (reads_input(step)) {
        ASSERT_EQ(chunk_[i], exact::result<int>(ReduceOp::sum, 3, offset_ + i)) << i;
      }
      if (step.has(kCopy)) chunk_[i] = -chunk_[i];
    }
  }
  void hand_on(const Step& step, const Range& slice) {
    if (step.has(kCopy)) inside_.note_final(step.chunk, slice);
  }

 private:
  static bool reads_input(const Step& step) { return step.has(kReduce) || !step.has(kRecv); }

  Inside& inside_;
  int* chunk_;
  std::uint64_t offset_;
  bool eager_;
};

// Several hosts, of which this is each in turn: cells are reduced before the rail needs them, and
// spread when they are final, in place too.
TEST_P(InsideOfRails, CellsFollowTheRail) {
  for (int hosts = 2; hosts <= 4; ++hosts) {
    for (int host = 0; host < hosts; ++host) {
      GroupWithRails group = group_with_rails(3, rails());
      std::vector<std::thread> threads;
      for (Wiring& wiring : group.wirings) {
        wiring.links.hosts = hosts;
        wiring.links.host = host;
        threads.emplace_back([&wiring, hosts, host] {
          Context context(wiring);
          Inside inside(context);
          std::uint64_t sequence = 0;
          for (const std::size_t count :
               {0U, 1U, 50U, 50U, 700U, 700U, 9000U, 9000U, 30000U, 30000U}) {
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
            Slicing rail;
            rail.chunks = static_cast<std::uint64_t>(hosts);
            rail.granule = kChunkGranuleBytes / sizeof(int);
            rail.slice_elems = 32;
            rail.window = 3;  // so that a cell takes two stages
            inside.begin(call, ReduceOp::sum, {}, rails(), rail);
            rail.count = inside.chunk().count;
            inside.meet(shown);
            if (inside.owns()) {
              const Range chunk = inside.chunk();
              NegatingRail port(inside, values.data() + chunk.offset, chunk.offset,
                                wiring.rank == 1);
              const Schedule schedule{Collective::all_reduce, Algorithm::ring, host, hosts, 0};
              ASSERT_TRUE(run_schedule(schedule, rail, port));
            }
            inside.finish();
            for (std::size_t i = 0; i < count; ++i) {
              ASSERT_EQ(values[i], -exact::result<int>(ReduceOp::sum, 3, i))
                  << i << " of " << count;
            }
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
  }
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
    insides[rank]->begin(calls[rank], ReduceOp::sum, {}, 1, std::nullopt);
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

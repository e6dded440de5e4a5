// The stages of a host, where it has more ranks than there are rails.

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bench/exact_values.hpp"
#include "engine/call_text.hpp"
#include "engine/inside.hpp"
#include "engine/run_schedule.hpp"
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
        inside.begin(call, ReduceOp::sum, {});
        ASSERT_TRUE(inside.meet(signature));
        ASSERT_TRUE(inside.finish());
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(out[i], exact::result<int>(ReduceOp::sum, 3, i)) << i << " of " << count;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A rail without a network, which changes the sign of the sums over the host's ranks when it makes them final.
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
    return !reads_input(step) || inside_.require_reduced(step.chunk, slice);
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

// Several hosts, of which this is each in turn: cells are reduced before the rail needs them, and spread when they are
// final, in place too.
TEST_P(InsideOfRails, CellsFollowTheRail) {
  for (int hosts = 2; hosts <= 4; ++hosts) {
    for (int host = 0; host < hosts; ++host) {
      GroupWithRails group = group_with_rails(GetParam());
      std::vector<std::thread> threads;
      for (Wiring& wiring : group.wirings) {
        wiring.links.hosts = hosts;
        wiring.links.host = host;
        threads.emplace_back([&wiring, hosts, host] {
          Waiter waiter(wiring);
          Inside inside(wiring, waiter);
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
            Signature signature = signature_of(call, Algorithm::hierarchical);
            signature.sequence = sequence++;
            wiring.links.segment->presence(wiring.rank).enter({signature, {}});
            waiter.begin_call(signature, std::chrono::minutes(5), false);
            Slicing rail;
            rail.count = inside.chunk(call).count;
            rail.chunks = static_cast<std::uint64_t>(hosts);
            rail.granule = kChunkGranuleBytes / sizeof(int);
            rail.slice_elems = 32;
            rail.window = 3;  // so that a cell takes two stages
            inside.begin(call, ReduceOp::sum, rail);
            ASSERT_TRUE(inside.meet(signature));
            if (inside.owns()) {
              const Range chunk = inside.chunk(call);
              NegatingRail port(inside, values.data() + chunk.offset, chunk.offset,
                                wiring.rank == 1);
              const Schedule schedule{Collective::all_reduce, Algorithm::ring, host, hosts, 0};
              ASSERT_TRUE(run_schedule(schedule, rail, port));
            }
            ASSERT_TRUE(inside.finish());
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

INSTANTIATE_TEST_SUITE_P(Rails, InsideOfRails, testing::Values(1, 2, 3));

}  // namespace
}  // namespace rondo::detail

// The schedule of every rank, run in one thread: what each rank does is recorded through the real
// loop (run_schedule), then all ranks' records are played against bounded FIFOs.

#include <algorithm>
#include <array>
#include <bitset>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run_schedule.hpp"
#include "tests/support/draw.hpp"

namespace rondo::detail {
namespace {

constexpr int kMostRanks = 17;
// Of which some are drawn beyond kMostRanks.
constexpr int kMostDrawn = 67;
using Heard = std::bitset<256>;

// How often each rank's input is in an element.
using Contributions = std::array<std::uint8_t, kMostDrawn>;

Contributions operator+(Contributions a, const Contributions& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint8_t>(a[i] + b[i]);
  return a;
}

int ranks_in(const Contributions& element) {
  return std::accumulate(element.begin(), element.end(), 0);
}

// Stands for the order in which a value was added up: equal for two sums of the same parts,
// whatever their left and right operands.
using Order = std::uint64_t;

Order order_of_part(int position) { return static_cast<Order>(position) + 1; }
Order order_of_sum(Order a, Order b) {
  Order mixed = a + b;  // by the finaliser of SplitMix64 (Steele et al., OOPSLA 2014)
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31U);
}

struct Action {
  Step step;
  Range slice;
};

class RecordingPort {
 public:
  bool acquire(const Step& /*step*/, const Range& /*slice*/) { return left_to_acquire-- > 0; }
  void move(const Step& step, const Range& slice) { actions.push_back({step, slice}); }
  void hand_on(const Step& /*step*/, const Range& /*slice*/) { ++handed_on; }
  [[nodiscard]] static std::uint64_t chunk_at(int position) {
    return static_cast<std::uint64_t>(position);
  }

  std::vector<Action> actions;
  std::size_t handed_on = 0;
  int left_to_acquire = std::numeric_limits<int>::max();
};
static_assert(Port<RecordingPort>);

struct Slot {
  Range slice;
  std::vector<Contributions> elements;
  std::vector<bool> finished;
  std::vector<Order> orders = {};
  Heard heard = {};  // a bit for each position that its sender has heard of
  int hops = 0;      // after so many messages, one after the other
};

struct Rank {
  std::vector<Action> actions;
  std::size_t done = 0;
  std::vector<Contributions> in;
  std::vector<Contributions> out;
  std::vector<bool> finished;  // each element of out: whether an average has been divided
  std::vector<Order> in_orders;
  std::vector<Order> out_orders;
  Heard heard;   // a bit for each position that this one has heard of, and its own
  int hops = 0;  // after so many messages, one after the other
};

struct Setting {
  Collective collective;
  Algorithm algorithm;
  int size;
  int root;
  std::uint64_t count;
  std::uint64_t slice_elems;
  std::uint64_t window;
  std::size_t depth;
  int most_halvings = 31;
};

class Simulation {
 public:
  explicit Simulation(const Setting& setting) : setting_(setting) {
    for (int position = 0; position < setting.size; ++position) {
      const Schedule schedule{
          setting.collective, setting.algorithm, position, setting.size,
          setting.root,       kNobody,           kNobody,  setting.most_halvings};
      const Slicing slicing{setting.count, static_cast<std::uint64_t>(schedule.chunks()), 1,
                            setting.slice_elems, setting.window};
      RecordingPort port;
      EXPECT_TRUE(run_schedule(schedule, slicing, port));
      Rank rank;
      rank.actions = std::move(port.actions);
      rank.heard.set(static_cast<std::size_t>(position));
      rank.in.assign(setting.count, {});
      for (Contributions& element : rank.in) element[static_cast<std::size_t>(position)] = 1;
      rank.out.assign(setting.count, {});
      rank.finished.assign(setting.count, false);
      rank.in_orders.assign(setting.count, order_of_part(position));
      rank.out_orders.assign(setting.count, 0);
      ranks_.push_back(std::move(rank));
    }
  }

  // False when nobody can go on.
  bool run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int position = 0; position < setting_.size; ++position) {
        while (try_next(position)) moved = true;
      }
    }
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const Rank& rank) { return rank.done == rank.actions.size(); });
  }

  [[nodiscard]] bool fifos_empty() const {
    return std::all_of(fifos_.begin(), fifos_.end(),
                       [](const auto& entry) { return entry.second.empty(); });
  }
  // Of the rank that comes last, when all have ended.
  [[nodiscard]] int hops() {
    EXPECT_TRUE(run());
    int most = 0;
    for (const Rank& rank : ranks_) most = std::max(most, rank.hops);
    return most;
  }
  [[nodiscard]] const Rank& rank(int position) const {
    return ranks_[static_cast<std::size_t>(position)];
  }

 private:
  bool try_next(int position) {
    Rank& rank = ranks_[static_cast<std::size_t>(position)];
    if (rank.done == rank.actions.size()) return false;
    const auto& [step, slice] = rank.actions[rank.done];
    std::deque<Slot>* from = step.has(kRecv) ? &fifos_[{step.from, position}] : nullptr;
    std::deque<Slot>* to = step.has(kSend) ? &fifos_[{position, step.to}] : nullptr;
    if (from != nullptr && from->empty()) return false;
    if (to != nullptr && to->size() >= setting_.depth) return false;
    Slot result{slice, {}, {}};
    if (from != nullptr && setting_.collective == Collective::all_to_all) {
      EXPECT_EQ(from->front().slice.count, slice.count);  // the sender's chunk has another number
    } else if (from != nullptr) {
      EXPECT_EQ(from->front().slice, slice);
    }
    for (std::uint64_t i = 0; i < slice.count; ++i) {
      const std::uint64_t element = slice.offset + i;
      const Contributions mine = step.has(kMineIsOutput) ? rank.out[element] : rank.in[element];
      Contributions value = from != nullptr ? from->front().elements[i] : mine;
      bool finished = from != nullptr ? from->front().finished[i]
                                      : step.has(kMineIsOutput) && rank.finished[element];
      const Order my_order =
          step.has(kMineIsOutput) ? rank.out_orders[element] : rank.in_orders[element];
      Order order = from != nullptr ? from->front().orders[i] : my_order;
      if (step.has(kReduce)) {
        order = order_of_sum(order, my_order);
        // Inputs are what averages of 16-bit floats still have to divide, and sums are what they
        // have divided.
        EXPECT_EQ(step.has(kReceivedIsInput), ranks_in(value) == 1);
        EXPECT_EQ(step.has(kMineIsOutput), ranks_in(mine) > 1);
        value = value + mine;
      }
      if (step.has(kFinish)) {
        EXPECT_FALSE(finished) << "an average would be divided twice";
        finished = true;
      }
      if (step.has(kCopy)) {
        rank.out[element] = value;
        rank.finished[element] = finished;
        rank.out_orders[element] = order;
      }
      result.elements.push_back(value);
      result.orders.push_back(order);
      result.finished.push_back(finished);
    }
    if (from != nullptr) {
      rank.heard |= from->front().heard;
      rank.hops = std::max(rank.hops, from->front().hops);
    }
    result.heard = rank.heard;
    result.hops = rank.hops + 1;
    if (from != nullptr) from->pop_front();
    if (to != nullptr) to->push_back(std::move(result));
    ++rank.done;
    return true;
  }

  Setting setting_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<Slot>> fifos_;
};

Contributions everyone(int size) {
  Contributions all{};
  std::fill_n(all.begin(), size, std::uint8_t{1});
  return all;
}
Contributions only(int position) {
  Contributions one{};
  one[static_cast<std::size_t>(position)] = 1;
  return one;
}

// What element `element` of the output must hold at `position`; nothing where it is not specified.
bool correct(const Setting& s, const Rank& rank, int position, std::uint64_t element) {
  const auto owner = [&] {
    int chunk = 0;
    while (true) {
      const Range range = chunk_range(s.count, static_cast<std::uint64_t>(s.size),
                                      static_cast<std::uint64_t>(chunk));
      if (element < range.offset + range.count) return chunk;
      ++chunk;
    }
  };
  const bool reduced =
      rank.out[element] == everyone(s.size) && (s.size == 1 || rank.finished[element]);
  switch (s.collective) {
    case Collective::all_reduce:
      return reduced;
    case Collective::reduce_scatter:
      return owner() != position || reduced;
    case Collective::reduce:
      return position != s.root || reduced;
    case Collective::all_gather:
      return rank.out[element] == only(owner());
    case Collective::broadcast:
      return rank.out[element] == only(s.root);
    case Collective::gather:
      return position != s.root || rank.out[element] == only(owner());
    case Collective::scatter:
      return owner() != position || rank.out[element] == only(s.root);
    case Collective::all_to_all:
      return rank.out[element] == only(owner());
    default:
      break;
  }
  return true;
}

void expect_correct(const Setting& setting) {
  Simulation simulation(setting);
  const auto where = [&] {
    return ::testing::Message() << name(setting.collective) << " by " << name(setting.algorithm)
                                << ", " << setting.size << " ranks, root " << setting.root << ", "
                                << setting.count << " elements, window " << setting.window
                                << ", depth " << setting.depth;
  };
  ASSERT_TRUE(simulation.run()) << "deadlock: " << where();
  EXPECT_TRUE(simulation.fifos_empty()) << where();
  const int hears_of_all =
      Schedule{setting.collective, setting.algorithm, 0, setting.size, setting.root}
          .confirming_position();
  for (int position = 0; position < setting.size; ++position) {
    if (hears_of_all == kNobody || hears_of_all == position) {
      ASSERT_EQ(simulation.rank(position).heard.count(), static_cast<std::size_t>(setting.size))
          << where() << ", position " << position;
    }
    for (std::uint64_t element = 0; element < setting.count; ++element) {
      ASSERT_TRUE(correct(setting, simulation.rank(position), position, element))
          << where() << ", position " << position << ", element " << element;
    }
  }
}

class ScheduleOfAllRanks : public ::testing::TestWithParam<std::tuple<int, Algorithm>> {};

TEST_P(ScheduleOfAllRanks, ReducesEachElementOnceAtAnyDepth) {
  const auto [size, algorithm] = GetParam();
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
        Collective::broadcast, Collective::reduce, Collective::barrier}) {
    const bool rooted = collective == Collective::broadcast || collective == Collective::reduce;
    for (int root = 0; root < (rooted ? size : 1); ++root) {
      for (const std::size_t depth : {2U, 3U, 4U, 8U}) {
        // The window that the library takes, and the widest that may be safe.
        for (const std::uint64_t window :
             {window_for(static_cast<std::uint32_t>(depth)), std::uint64_t{depth - 1}}) {
          const auto n = static_cast<std::uint64_t>(size);
          expect_correct({collective, algorithm, size, root, 5 * n + 1, 1, window, depth});
        }
      }
    }
  }
}

TEST_P(ScheduleOfAllRanks, HandlesEveryCount) {
  const auto [size, algorithm] = GetParam();
  const auto n = static_cast<std::uint64_t>(size);
  for (const std::uint64_t count :
       {std::uint64_t{0}, std::uint64_t{1}, n - 1, n, n + 1, 7 * n + 3}) {
    for (const Collective collective :
         {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
          Collective::broadcast, Collective::reduce}) {
      expect_correct({collective, algorithm, size, size - 1, count, 3, 4, 8});
    }
  }
}

class PairwiseOfAllRanks : public ::testing::TestWithParam<int> {};

TEST_P(PairwiseOfAllRanks, BringsEachElementOnceAtAnyDepth) {
  const int size = GetParam();
  const auto n = static_cast<std::uint64_t>(size);
  for (const Collective collective :
       {Collective::all_to_all, Collective::gather, Collective::scatter}) {
    for (int root = 0; root < (collective == Collective::all_to_all ? 1 : size); ++root) {
      for (const std::size_t depth : {2U, 3U, 4U, 8U}) {
        const std::uint64_t window = window_for(static_cast<std::uint32_t>(depth));
        for (const std::uint64_t each : {0U, 1U, 5U, 17U}) {
          expect_correct({collective, Algorithm::pairwise, size, root, each * n, 1, window, depth});
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, PairwiseOfAllRanks, ::testing::Range(1, kMostRanks + 1));

// Why a window takes at most half of a FIFO along which receives lag.
TEST(Schedule, ALagNeedsTwoWindows) {
  EXPECT_FALSE(Simulation({Collective::all_to_all, Algorithm::pairwise, 4, 0, 64, 1, 3, 4}).run());
}

class DoublingOfAllRanks : public ::testing::TestWithParam<int> {};

TEST_P(DoublingOfAllRanks, ReducesEachElementOnceAtAnyDepth) {
  for (const std::size_t depth : {2U, 3U, 4U, 8U}) {
    for (const std::uint64_t window :
         {window_for(static_cast<std::uint32_t>(depth)), std::uint64_t{depth - 1}}) {
      for (const std::uint64_t count : {0U, 1U, 2U, 31U}) {
        for (const Collective collective : {Collective::all_reduce, Collective::barrier}) {
          expect_correct(
              {collective, Algorithm::recursive_doubling, GetParam(), 0, count, 1, window, depth});
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, DoublingOfAllRanks, ::testing::Range(1, kMostRanks + 1));

class HalvingOfAllRanks : public ::testing::TestWithParam<int> {};

TEST_P(HalvingOfAllRanks, ReducesEachElementOnceAtAnyDepth) {
  for (const std::size_t depth : {2U, 3U, 4U, 8U}) {
    const std::uint64_t window = window_for(static_cast<std::uint32_t>(depth));
    for (const std::uint64_t count : {0U, 1U, 2U, 5U, 31U, 64U, 129U}) {
      for (const std::uint64_t slice_elems : {1U, 3U}) {
        for (const int halvings : {0, 1, 2, 3, 4}) {
          expect_correct({Collective::all_reduce, Algorithm::halving_doubling, GetParam(), 0, count,
                          slice_elems, window, depth, halvings});
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, HalvingOfAllRanks, ::testing::Range(1, kMostRanks + 1));

// How often vectors are halved depends on how fast the link is; results do not.
TEST(Halving, AddsInOneOrderHoweverOftenItHalves) {
  for (int size = 2; size <= kMostRanks; ++size) {
    std::optional<Order> order;
    for (const int halvings : {0, 1, 2, 3, 4, 31}) {
      Simulation simulation(
          {Collective::all_reduce, Algorithm::halving_doubling, size, 0, 37, 1, 1, 4, halvings});
      ASSERT_TRUE(simulation.run());
      for (int position = 0; position < size; ++position) {
        for (const Order of_element : simulation.rank(position).out_orders) {
          if (!order) order = of_element;
          ASSERT_EQ(of_element, *order) << size << " ranks, " << halvings << " halvings";
        }
      }
    }
  }
}

// Why a receive that lags needs two windows.
TEST(Halving, AWindowOfMoreThanHalfTheFifoDeadlocks) {
  EXPECT_FALSE(
      Simulation({Collective::all_reduce, Algorithm::halving_doubling, 4, 0, 64, 1, 3, 4}).run());
}

class TreeOfAllRanks : public ::testing::TestWithParam<int> {};

TEST_P(TreeOfAllRanks, MovesEachElementOnceAtAnyDepth) {
  const int size = GetParam();
  const auto n = static_cast<std::uint64_t>(size);
  for (const std::size_t depth : {6U, 8U, 16U}) {
    for (const std::uint64_t slice_elems : {1U, 3U}) {
      for (const std::uint64_t count :
           {std::uint64_t{0}, std::uint64_t{1}, n - 1, n, n + 1, 5 * n + 3}) {
        for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather}) {
          expect_correct({collective, Algorithm::tree, size, 0, count, slice_elems,
                          tree::window_for_pieces(static_cast<std::uint32_t>(depth)), depth});
        }
        for (int root = 0; root < size; ++root) {
          for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
            expect_correct({collective, Algorithm::tree, size, root, count, slice_elems,
                            window_for(static_cast<std::uint32_t>(depth)), depth});
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, TreeOfAllRanks, ::testing::Range(1, kMostRanks + 1));

// Of more ranks than are tried one by one, by all that has log-many hops.
TEST(ManyRanks, HaveRightResultsToo) {
  const std::uint64_t seed = test::test_number("RONDO_TEST_SEED", 1);
  std::mt19937_64 random(seed);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int trial = 0; trial < 40; ++trial) {
    const int size = draw(kMostRanks + 1, kMostDrawn);
    const int root = draw(0, size - 1);
    const auto count = static_cast<std::uint64_t>(draw(0, 4 * size));
    const auto slice_elems = static_cast<std::uint64_t>(draw(1, 9));
    const auto depth = static_cast<std::uint32_t>(draw(6, 16));
    SCOPED_TRACE("RONDO_TEST_SEED=" + std::to_string(seed));
    for (const Collective collective : {Collective::broadcast, Collective::reduce,
                                        Collective::all_gather, Collective::reduce_scatter}) {
      const bool pieces =
          collective == Collective::all_gather || collective == Collective::reduce_scatter;
      expect_correct({collective, Algorithm::tree, size, root, count, slice_elems,
                      pieces ? tree::window_for_pieces(depth) : window_for(depth), depth});
    }
    for (const Algorithm algorithm : {Algorithm::halving_doubling, Algorithm::recursive_doubling}) {
      expect_correct({Collective::all_reduce, algorithm, size, 0, count, slice_elems,
                      window_for(depth), depth, draw(0, 7)});
    }
  }
}

// No rank is later than after so many hops, if every message takes one.
TEST(Tree, HasLogManyHops) {
  for (int size = 2; size <= 200; ++size) {
    int rounds = 0;
    while ((1 << rounds) < size) ++rounds;
    const auto hops = [&](Collective collective) {
      return Simulation({collective, Algorithm::tree, size, 0, 0, 1, 1, 6}).hops();
    };
    EXPECT_EQ(hops(Collective::reduce_scatter), rounds);
    EXPECT_EQ(hops(Collective::all_gather), rounds);
    EXPECT_LE(hops(Collective::reduce), rounds);
    EXPECT_LE(hops(Collective::broadcast), 2 * rounds);  // the greetings go back
  }
}

// Both partners must name the operands in the same order.
TEST(Doubling, TheLowerPositionIsTheLeftOperand) {
  for (int size = 2; size <= kMostRanks; ++size) {
    for (int position = 0; position < size; ++position) {
      for (const Algorithm algorithm :
           {Algorithm::recursive_doubling, Algorithm::halving_doubling}) {
        Schedule schedule{Collective::all_reduce, algorithm, position, size, 0};
        schedule.most_halvings = 0;
        for (int index = 0; index < schedule.steps(); ++index) {
          const Step step = schedule.step(index);
          if (!step.has(kReduce)) continue;
          EXPECT_EQ(step.has(kMineFirst), position < step.from);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ScheduleOfAllRanks,
                         ::testing::Combine(::testing::Range(1, kMostRanks + 1),
                                            ::testing::Values(Algorithm::ring, Algorithm::naive)));

// Why the library asks for two slots: with one, every rank holds the slot that its prev waits for.
TEST(Schedule, OneSlotDeadlocks) {
  EXPECT_FALSE(Simulation({Collective::all_reduce, Algorithm::ring, 4, 0, 16, 1, 1, 1}).run());
}

// Why a window is narrower than the FIFO.
TEST(Schedule, AWindowAsWideAsTheFifoDeadlocks) {
  EXPECT_FALSE(Simulation({Collective::all_reduce, Algorithm::ring, 4, 0, 64, 1, 4, 4}).run());
}

TEST(Schedule, IsAConstant) {
  constexpr Schedule kSchedule{Collective::all_reduce, Algorithm::ring, 1, 4, 0};
  static_assert(kSchedule.steps() == 7);
  static_assert(kSchedule.step(0).verb == kSend && kSchedule.step(0).chunk == 0);
  static_assert(kSchedule.step(1).verb == (kRecvReduceSend | kReceivedIsInput) &&
                kSchedule.step(1).chunk == 3);
  static_assert(kSchedule.step(3).verb == (kRecvReduceCopySend | kFinish));
  static_assert(kSchedule.step(3).chunk == 1);
  static_assert(kSchedule.step(6).verb == kRecvCopy && kSchedule.step(6).chunk == 2);
}

TEST(Slicing, ChannelsCoverEveryChunkAndWalkTheSameWindows) {
  for (const std::uint64_t count : {0U, 1U, 63U, 64U, 1000U, 4097U}) {
    for (const std::uint64_t granule : {1U, 16U}) {
      for (const std::uint64_t channels : {1U, 2U, 3U, 8U}) {
        Slicing slicing{count, 3, granule, 32, 2, channels, 0, 16};
        for (std::uint64_t chunk = 0; chunk < 3; ++chunk) {
          std::uint64_t next = chunk_range(count, 3, chunk, granule).offset;
          for (slicing.channel = 0; slicing.channel < channels; ++slicing.channel) {
            const Range part = slicing.part(chunk);
            EXPECT_EQ(part.offset, next);
            next += part.count;
            // Every slice is reached by the windows that chunk 0 asks for.
            EXPECT_LE(slicing.slices(part), slicing.windows() * slicing.window);
          }
          const Range whole = chunk_range(count, 3, chunk, granule);
          EXPECT_EQ(next, whole.offset + whole.count);
        }
      }
    }
  }
}

TEST(Chunks, CoverTheVectorInOrder) {
  for (const std::uint64_t chunks : {1U, 2U, 3U, 7U, 16U}) {
    for (const std::uint64_t granule : {1U, 16U}) {
      for (const std::uint64_t count : {0U, 1U, 5U, 15U, 16U, 17U, 1000U, 4097U}) {
        std::uint64_t next = 0;
        for (std::uint64_t i = 0; i < chunks; ++i) {
          const Range range = chunk_range(count, chunks, i, granule);
          EXPECT_EQ(range.offset, next);
          EXPECT_TRUE(range.count == 0 || range.offset % granule == 0);
          EXPECT_LE(range.count, chunk_range(count, chunks, 0, granule).count);
          next += range.count;
        }
        EXPECT_EQ(next, count);
      }
    }
  }
}

TEST(Chunks, AreEqualWhenTheyCanBe) {
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(chunk_range(400, 4, i), (Range{i * 100, 100}));
}

TEST(Chunks, CountsAbove32BitsKeepTheirSize) {
  constexpr std::uint64_t kCount = (std::uint64_t{1} << 40U) + 5;
  EXPECT_EQ(chunk_range(kCount, 2, 1),
            (Range{(std::uint64_t{1} << 39U) + 3, (std::uint64_t{1} << 39U) + 2}));
}

TEST(RunSchedule, StopsAtOnceWhenTheSlotsOfASliceCannotBeHad) {
  const Schedule schedule{Collective::all_reduce, Algorithm::ring, 1, 3, 0};
  const Slicing slicing{100, 3, 1, 8, 4};
  RecordingPort whole;
  ASSERT_TRUE(run_schedule(schedule, slicing, whole));
  for (std::size_t slices = 0; slices < whole.actions.size(); ++slices) {
    RecordingPort port;
    port.left_to_acquire = static_cast<int>(slices);
    EXPECT_FALSE(run_schedule(schedule, slicing, port));
    EXPECT_EQ(port.actions.size(), slices);
    EXPECT_EQ(port.handed_on, slices);
    EXPECT_EQ(port.left_to_acquire, -1) << "it asked again";
  }
}

}  // namespace
}  // namespace rondo::detail

// When a wait spins, yields and sleeps; the test supplies the rounds and times.

#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

#include "engine/core_share.hpp"
#include "engine/pace.hpp"

namespace rondo::detail {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Rest = Pace::Rest;

constexpr std::uint64_t kBulk = std::uint64_t{128} << 10U;

Pace pace(const Surroundings& around, std::uint64_t chunk_bytes = 1000, bool background = false) {
  Pace pace(around);
  pace.begin_call(chunk_bytes, background);
  return pace;
}

// The first round after which the wait rests in this way.
std::uint64_t first(const Pace& pace, Rest rest) {
  std::uint64_t round = 0;
  while (pace.rest_after(round) != rest) ++round;
  return round;
}

TEST(Pace, SpinsThenYieldsThenSleeps) {
  const Pace alone = pace({});
  EXPECT_GT(alone.eager_looks(), 1);
  EXPECT_GT(alone.looks_per_round(), 1);
  EXPECT_EQ(first(alone, Rest::yield), 64U);
  EXPECT_EQ(first(alone, Rest::sleep), 2064U);
  for (std::uint64_t round = 64; round < 2064; ++round) {
    ASSERT_EQ(alone.rest_after(round), Rest::yield) << round;
  }
  EXPECT_EQ(alone.rest_after(1'000'000), Rest::sleep) << "never awake again";
}

TEST(Pace, DoesNotSpinWhereOthersNeedTheCore) {
  for (const Surroundings& around :
       {Surroundings{true, false, {}}, Surroundings{false, true, {}}}) {
    const Pace one = pace(around);
    EXPECT_EQ(one.eager_looks(), 1);
    EXPECT_EQ(one.looks_per_round(), 1);
    EXPECT_EQ(first(one, Rest::sleep), 2001U);
  }
  EXPECT_EQ(first(pace({false, true, {}}), Rest::yield), 1U);
  // With a pump the wait yields less often: MPI yields by itself where it is configured to.
  const Pace pumping = pace({true, false, {}});
  for (std::uint64_t round = 1; round < 100; ++round) {
    EXPECT_EQ(pumping.rest_after(round), round % 8 == 7 ? Rest::yield : Rest::none) << round;
  }
}

TEST(Pace, InTheBackgroundSleepsAlmostAtOnce) {
  const Pace alone = pace({}, 1000, true);
  EXPECT_EQ(first(alone, Rest::sleep), 1U);
  EXPECT_EQ(alone.nap_after(0), milliseconds(1)) << "a bell ends it";
  const Pace pumping = pace({true, false, {}}, 1000, true);
  EXPECT_EQ(pumping.nap_after(0), microseconds(50)) << "nobody rings for what comes by network";
}

TEST(Pace, NapsGrowLonger) {
  const Pace alone = pace({});
  EXPECT_EQ(alone.nap_after(0), microseconds(50));
  EXPECT_EQ(alone.nap_after(1), microseconds(100));
  EXPECT_EQ(alone.nap_after(19), milliseconds(1));
  EXPECT_EQ(alone.nap_after(39), milliseconds(1));
  EXPECT_EQ(alone.nap_after(40), milliseconds(4)) << "a bell ends it";
  EXPECT_EQ(alone.nap_after(std::uint64_t{1} << 40U), milliseconds(4));
  const Pace pumping = pace({true, false, {}});
  EXPECT_EQ(pumping.nap_after(std::uint64_t{1} << 40U), milliseconds(1));
}

TEST(Pace, NapsEarlyWhileTheNetworkWorksOnALongVector) {
  const Surroundings network{true, false, {microseconds(120), kBulk}};
  const Pace bulk = pace(network, kBulk);
  EXPECT_EQ(first(bulk, Rest::sleep), 5U);
  EXPECT_EQ(bulk.nap_after(0), microseconds(120));
  EXPECT_EQ(bulk.nap_after(5000), microseconds(120));
  const Pace shorter = pace(network, kBulk - 1);
  EXPECT_EQ(first(shorter, Rest::sleep), 2001U);
  EXPECT_EQ(first(pace(network, 8, true), Rest::sleep), 5U);
  EXPECT_EQ(first(pace({true, false, {}}, kBulk), Rest::sleep), 2001U) << "a fast network";
}

TEST(Pace, LooksAroundNowAndThenAndAtEverySleep) {
  const Pace alone = pace({});
  for (std::uint64_t round = 0; round < 3000; ++round) {
    const bool calls = round >= 64 && round % (round < 2064 ? 64 : 16) == 0;
    ASSERT_EQ(alone.compares_calls(round), calls) << round;
    ASSERT_EQ(alone.reads_clock(round), calls || round >= 2064) << round;
  }
}

TEST(Pace, ComparesCallsLessOftenWhileNapsAreShort) {
  const Pace bulk = pace({true, false, {microseconds(120), kBulk}}, kBulk);
  for (std::uint64_t round = 0; round < 3000; ++round) {
    ASSERT_EQ(bulk.compares_calls(round), round > 0 && round % 64 == 0) << round;
  }
}

// It spins for as long as that ends waits, and sleeps at once where it does not.
TEST(Pace, SleepsSoonWhereOthersWantTheCore) {
  Pace alone = pace({});
  const auto spins_for = [&] {
    alone.begin_wait(true);
    return first(alone, Rest::sleep);
  };
  for (const std::uint64_t rounds : {32U, 16U, 8U, 4U, 2U, 1U, 0U, 0U}) {
    EXPECT_EQ(spins_for(), rounds);
    EXPECT_TRUE(rounds == 0 || alone.rest_after(rounds - 1) == Rest::none) << "it does not yield";
    alone.end_wait(true);
  }
  EXPECT_FALSE(alone.reads_clock(0)) << "before the first nap";
  EXPECT_TRUE(alone.reads_clock(1));
  int tries = 0;
  for (int wait = 0; wait < 32; ++wait) {
    const std::uint64_t rounds = spins_for();
    EXPECT_TRUE(rounds == 0 || rounds == 32);
    tries += rounds == 32 ? 1 : 0;
    alone.end_wait(true);
    while (spins_for() > 0) alone.end_wait(true);
  }
  EXPECT_GE(tries, 1);
  while (spins_for() != 32) alone.end_wait(true);
  alone.end_wait(false);
  EXPECT_EQ(spins_for(), 32U) << "what was of use is used again";
  EXPECT_EQ(alone.nap_after(0), microseconds(50)) << "a bell may miss it";
  EXPECT_EQ(alone.nap_after(1), milliseconds(1));
  alone.begin_wait(false);
  EXPECT_EQ(first(alone, Rest::yield), 64U) << "as ever";
  alone.begin_call(1000, false);
  EXPECT_EQ(first(alone, Rest::sleep), 2064U);
  Pace crowded = pace({false, true, {}});
  crowded.begin_wait(true);
  EXPECT_EQ(first(crowded, Rest::sleep), 0U);
  Pace pumping = pace({true, false, {}});
  pumping.begin_wait(true);
  EXPECT_EQ(first(pumping, Rest::sleep), 2001U) << "nobody rings for what comes by network";
}

TEST(CoreShare, IsWantedForLongerEachTimeThatATryCostASlice) {
  CoreShare core;
  Clock::time_point now{seconds(1000)};
  EXPECT_FALSE(core.is_wanted());
  std::int64_t interruptions = 1000;  // long ago
  core.begin_yields(interruptions);
  core.note_long_yield(now, interruptions);
  EXPECT_FALSE(core.is_wanted()) << "the scheduler has not interrupted it";
  for (const int wanted_ms : {100, 200, 400, 800, 1000, 1000}) {
    core.begin_yields(interruptions);
    core.note_long_yield(now, ++interruptions);
    EXPECT_TRUE(core.is_wanted());
    core.try_again(now + milliseconds(wanted_ms - 1), interruptions);
    EXPECT_TRUE(core.is_wanted()) << wanted_ms;
    now += milliseconds(wanted_ms);
    EXPECT_TRUE(core.is_due(now));
    core.try_again(now, interruptions);
    EXPECT_FALSE(core.is_wanted()) << wanted_ms;
    now += milliseconds(3);
  }
  now += seconds(3);
  core.begin_yields(interruptions);
  core.note_long_yield(now, ++interruptions);
  core.try_again(now + milliseconds(100), interruptions);
  EXPECT_FALSE(core.is_wanted()) << "it was free for long";
}

TEST(CoreShare, IsWantedAsLongAsTheProgramIsInterrupted) {
  CoreShare core;
  Clock::time_point now{seconds(1000)};
  core.begin_yields(4);
  core.note_long_yield(now, 5);
  for (const std::int64_t interruptions : {10, 15, 99}) {
    now += milliseconds(100);
    core.try_again(now, interruptions);
    EXPECT_TRUE(core.is_wanted()) << interruptions;
  }
  core.try_again(now + milliseconds(100), 103);
  EXPECT_FALSE(core.is_wanted()) << "the system itself interrupts it so often";
}

TEST(CoreShare, IsFreeForAProgramThatCallsSeldom) {
  CoreShare core;
  const Clock::time_point now{seconds(1000)};
  core.begin_yields(4);
  core.note_long_yield(now, 5);
  core.try_again(now + seconds(10), 105);
  EXPECT_FALSE(core.is_wanted()) << "ten interruptions a second are usual";
}

// Ranks that share cores: the turn of another rank is no lost slice.
TEST(CoreShare, IsJudgedByMostOfItsYieldsWhereRanksShareIt) {
  CoreShare core;
  const auto note = [&](int times, Clock::duration took) {
    bool lost = false;
    for (int i = 0; i < times; ++i) lost = core.note_shared_yield(took);
    return lost;
  };
  EXPECT_FALSE(note(6, milliseconds(3))) << "too few to judge by";
  EXPECT_TRUE(note(1, milliseconds(3)));
  core.lose_slices(Clock::time_point{seconds(1000)}, 7);
  EXPECT_TRUE(core.is_wanted());
  EXPECT_FALSE(note(6, milliseconds(3))) << "it begins anew";
  EXPECT_FALSE(note(100, microseconds(100)));
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(note(1, milliseconds(3)) || note(100, microseconds(20))) << i;
  }
  EXPECT_TRUE(note(100, milliseconds(3))) << "what was long ago counts less";
}

TEST(Pace, SleepsSoonWhereRanksAreShortOfTheirQuota) {
  Surroundings around;
  around.short_of_quota = true;
  Pace one = pace(around);
  EXPECT_EQ(first(one, Rest::sleep), 32U);
  one.begin_wait(false);
  one.end_wait(true);
  one.begin_wait(false);
  EXPECT_EQ(first(one, Rest::sleep), 16U);
}

TEST(Pace, NapsShortWhereLooksDriveMpi) {
  Surroundings around;
  around.drives_program = true;
  Pace one = pace(around);
  one.begin_wait(true);
  EXPECT_EQ(one.nap_after(1), microseconds(100));
}

TEST(CallDeadline, CountsFromTheFirstLongWait) {
  const Clock::time_point start{seconds(1000)};
  CallDeadline deadline;
  for (const seconds later : {seconds(0), seconds(500)}) {
    deadline.begin_call(milliseconds(300));
    EXPECT_FALSE(deadline.due_at(start + later).too_late) << "of the call before";
    EXPECT_FALSE(deadline.due_at(start + later + milliseconds(299)).too_late);
    EXPECT_TRUE(deadline.due_at(start + later + milliseconds(300)).too_late);
  }
  deadline.begin_call(milliseconds::max());
  EXPECT_FALSE(deadline.due_at(start).too_late);
  EXPECT_FALSE(deadline.due_at(start + std::chrono::hours(24 * 365)).too_late) << "no overflow";
}

TEST(CallDeadline, CallsTheRollTenTimesASecondAndAtTheEnd) {
  const Clock::time_point start{seconds(1000)};
  CallDeadline deadline;
  deadline.begin_call(milliseconds(250));
  int rolls = 0;
  for (int ms = 0; ms < 250; ++ms) rolls += deadline.due_at(start + milliseconds(ms)).roll_call;
  EXPECT_EQ(rolls, 2);
  EXPECT_TRUE(deadline.due_at(start + milliseconds(250)).roll_call);
}

}  // namespace
}  // namespace rondo::detail

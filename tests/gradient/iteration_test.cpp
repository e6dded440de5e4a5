// The protocol of a reducer without threads and without collective calls: what the callers of each
// rank say, and that all ranks conclude the same from the words that they exchange.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gradient/bucket_plan.hpp"
#include "gradient/iteration.hpp"
#include "gradient/opening.hpp"
#include "gradient/recorder.hpp"
#include "tests/support/errors.hpp"

namespace rondo::detail {
namespace {

using test::usage_error;

// Six parameters of 100 elements, two to a bucket, from the last on.
std::vector<Parameter> six_parameters() {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 6; ++i) {
    parameters.push_back(Parameter::owned_gradient_only<float>("p" + std::to_string(i), 100));
  }
  return parameters;
}

std::vector<Bucket> buckets_of(const std::vector<Parameter>& parameters) {
  std::vector<ParameterShape> shapes;
  for (const Parameter& parameter : parameters) {
    shapes.push_back({parameter.count, parameter.type});
  }
  return plan_buckets(shapes, reverse_order(shapes.size()), {800, 800, 0});
}

struct OneRank {
  explicit OneRank(GradientOptions with = {}, int number = 1)
      : options(std::move(with)), rank(number) {
    iteration.set_buckets(buckets);
  }
  GradientOptions options;
  int rank;
  std::vector<Parameter> parameters = six_parameters();
  std::vector<Bucket> buckets = buckets_of(parameters);
  Iteration iteration{rank, parameters, options};

  Wrong mark(std::size_t parameter) { return iteration.mark(parameter, Wrong::nothing).what; }
};

TEST(Iteration, LetsBucketsGoInTheirOrder) {
  OneRank rank;
  ASSERT_EQ(rank.buckets.size(), 3U);
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(rank.iteration.begin(false));
    // Bucket 1 is complete first, but bucket 0 goes before it.
    for (const std::size_t parameter : {2U, 3U, 4U}) {
      EXPECT_EQ(rank.mark(parameter), Wrong::nothing);
      EXPECT_FALSE(rank.iteration.may_go());
    }
    EXPECT_TRUE(rank.iteration.ledger().complete(1));
    EXPECT_EQ(rank.mark(5), Wrong::nothing);
    for (const std::size_t bucket : {0U, 1U}) {
      EXPECT_EQ(rank.iteration.next(), bucket);
      EXPECT_TRUE(rank.iteration.may_go());
      rank.iteration.advance();
    }
    EXPECT_FALSE(rank.iteration.may_go());
    EXPECT_EQ(rank.iteration.missing_in(rank.buckets[2]), (std::vector<std::size_t>{0, 1}));
    rank.iteration.finish();
    EXPECT_TRUE(rank.iteration.may_go());
    const auto arrival = rank.iteration.ledger().arrival();
    EXPECT_EQ(std::vector<std::uint32_t>(arrival.begin(), arrival.end()),
              (std::vector<std::uint32_t>{2, 3, 4, 5}));
    rank.iteration.end();
  }
}

TEST(Iteration, SaysWhatIsWrongWithAMark) {
  OneRank rank;
  EXPECT_FALSE(rank.iteration.begin(false));
  EXPECT_EQ(rank.mark(6), Wrong::unknown);
  EXPECT_EQ(rank.iteration.mark(6, Wrong::pointer).what, Wrong::unknown);
  EXPECT_EQ(rank.iteration.mark(3, Wrong::pointer).what, Wrong::pointer);
  EXPECT_EQ(rank.mark(3), Wrong::nothing) << "the wrong mark did not count";
  const Complaint twice = rank.iteration.mark(3, Wrong::nothing);
  EXPECT_EQ(twice.what, Wrong::twice);
  EXPECT_EQ(twice.rank, 1);
  EXPECT_EQ(twice.parameter, 3U);
  EXPECT_NE(rank.iteration.text_of(twice).find("rank 1: mark_ready: parameter 3 ('p3')"),
            std::string::npos);
  rank.iteration.finish();
  EXPECT_EQ(rank.mark(2), Wrong::late);
}

TEST(Iteration, NamesTheFirstMissingGradientAndCountsTheOthers) {
  for (const bool allowed : {false, true}) {
    for (const bool joined : {false, true}) {
      GradientOptions options;
      options.allow_unused = allowed;
      OneRank rank(options);
      static_cast<void>(rank.iteration.begin(joined));
      EXPECT_EQ(rank.mark(4), Wrong::nothing);
      rank.iteration.finish();
      for (const Bucket& bucket : rank.buckets) {
        for (const std::size_t parameter : rank.iteration.missing_in(bucket)) {
          rank.iteration.note(rank.iteration.complaint_about_missing(parameter));
        }
      }
      const Complaint noted = rank.iteration.take_noted();
      EXPECT_EQ(static_cast<bool>(noted), !allowed && !joined);
      EXPECT_FALSE(rank.iteration.noted());
      if (!noted) continue;
      EXPECT_EQ(noted.what, Wrong::unmarked);
      EXPECT_EQ(noted.parameter, 5U);
      EXPECT_EQ(noted.more, 4);
    }
  }
}

TEST(Iteration, WantsSamplesAnewEachTime) {
  GradientOptions options;
  options.average = Average::samples;
  OneRank rank(options);
  EXPECT_EQ(rank.iteration.begin(false).what, Wrong::samples);
  EXPECT_NE(
      usage_error([&] { rank.iteration.set_samples(1); }).find("in the middle of an iteration"),
      std::string::npos);
  rank.iteration.end();
  rank.iteration.set_samples(7);
  EXPECT_FALSE(rank.iteration.begin(false));
  EXPECT_EQ(rank.iteration.take_opening().part, OpeningWords::of_samples(7, 0).part);
  rank.iteration.end();
  EXPECT_EQ(rank.iteration.begin(false).what, Wrong::samples);
  rank.iteration.end();
  EXPECT_FALSE(rank.iteration.begin(true)) << "who has joined has none";
  rank.iteration.end();
  EXPECT_NE(usage_error([&] { rank.iteration.set_samples(kMostSamples + 1); }).find("2^60"),
            std::string::npos);
}

TEST(Iteration, CountsPassesByTheirEnd) {
  OneRank rank;
  const auto passes = [&] {
    static_cast<void>(rank.iteration.begin(false));
    const std::uint64_t count = rank.iteration.take_opening().passes;
    rank.iteration.end();
    return count;
  };
  EXPECT_EQ(passes(), 0U);
  rank.iteration.pause();
  EXPECT_FALSE(rank.iteration.mark_in_pass(3, Wrong::nothing));
  rank.iteration.end_pass();
  EXPECT_FALSE(rank.iteration.mark_in_pass(3, Wrong::nothing));
  EXPECT_FALSE(rank.iteration.mark_in_pass(4, Wrong::nothing));
  rank.iteration.pause();
  rank.iteration.go_on();
  EXPECT_TRUE(rank.iteration.is_paused());
  rank.iteration.go_on();
  EXPECT_FALSE(rank.iteration.is_paused());
  EXPECT_EQ(passes(), 2U) << "the second ended with the last no_sync";
  EXPECT_EQ(passes(), 0U);
  rank.iteration.pause();
  EXPECT_EQ(rank.iteration.mark_in_pass(9, Wrong::nothing).what, Wrong::unknown);
  EXPECT_EQ(rank.iteration.mark_in_pass(3, Wrong::count).what, Wrong::count);
  rank.iteration.go_on();
  EXPECT_EQ(passes(), 0U) << "wrong marks are no pass";
}

// Every rank says its words; these are then exchanged as by an all_reduce with max.
std::vector<Opening> opened(std::vector<Opening> ranks, const std::vector<OpeningWords>& said) {
  std::vector<std::span<std::uint64_t>> words;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    words.push_back(ranks[rank].say(said[rank]));
  }
  for (std::size_t i = 0; i < words[0].size(); ++i) {
    std::uint64_t most = 0;
    for (const auto& of_rank : words) most = std::max(most, of_rank[i]);
    for (const auto& of_rank : words) of_rank[i] = most;
  }
  return ranks;
}

std::vector<Opening> four_ranks() {
  std::vector<Opening> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.emplace_back(rank, 4);
  return ranks;
}

TEST(Opening, CountsWhoTakesPartAndAllSamples) {
  const auto ranks =
      opened(four_ranks(), {OpeningWords::of_samples(8, 1), OpeningWords::of_joined(0),
                            OpeningWords::of_samples(0, 1), OpeningWords::of_samples(5, 1)});
  const std::vector<std::uint64_t> own = {8, 0, 0, 5};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const TakingPart who = ranks[rank].who();
    EXPECT_EQ(who.ranks, 4U);
    EXPECT_EQ(who.live, 3U);
    EXPECT_EQ(who.samples, 13U);
    EXPECT_EQ(who.own_samples, own[rank]);
    EXPECT_FALSE(ranks[rank].all_have_joined());
    EXPECT_EQ(ranks[rank].takes_part(1), false);
    EXPECT_FALSE(ranks[rank].different_passes()) << "a rank that has joined makes none";
  }
}

TEST(Opening, FindsTheSameRankWithOtherPassesOnAllRanks) {
  const auto ranks =
      opened(four_ranks(), {OpeningWords::of_joined(9), OpeningWords::of_samples(1, 2),
                            OpeningWords::of_samples(1, 2), OpeningWords::of_samples(1, 3)});
  for (const Opening& rank : ranks) {
    const Complaint different = rank.different_passes();
    EXPECT_EQ(different.what, Wrong::passes);
    EXPECT_EQ(different.rank, 3);
    EXPECT_NE(rank.text_of_passes(3).find("rank 3: finish: it made 3 passes"), std::string::npos);
    EXPECT_NE(rank.text_of_passes(3).find("and rank 1 made 2"), std::string::npos);
  }
}

TEST(Opening, KnowsWhoJoinedLast) {
  const OpeningWords has = OpeningWords::of_samples(1, 0);
  const OpeningWords joined = OpeningWords::of_joined(0);
  auto ranks = opened(four_ranks(), {joined, joined, has, has});
  ranks = opened(std::move(ranks), {joined, joined, joined, joined});
  for (const Opening& rank : ranks) {
    EXPECT_TRUE(rank.all_have_joined());
    EXPECT_EQ(rank.last_to_join(), 2);
  }
  ranks = opened(std::move(ranks), {joined, joined, joined, joined});
  for (const Opening& rank : ranks) EXPECT_EQ(rank.last_to_join(), 0) << "nobody took a step since";
}

// A whole iteration of four ranks, of which rank 2 marks a gradient twice and rank 3 forgets two.
TEST(Protocol, TellsAllRanksTheSameComplaint) {
  std::vector<OneRank> ranks;
  ranks.reserve(4);
  for (int rank = 0; rank < 4; ++rank) ranks.emplace_back(GradientOptions{}, rank);
  std::uint64_t greatest = 0;
  for (OneRank& one : ranks) {
    EXPECT_FALSE(one.iteration.begin(false));
    for (std::size_t i = 0; i < 6; ++i) {
      if (one.rank == 3 && i % 3 == 1) continue;
      EXPECT_EQ(one.mark(i), Wrong::nothing);
    }
    if (one.rank == 2) one.iteration.note(one.iteration.mark(5, Wrong::nothing));
    one.iteration.finish();
    for (const Bucket& bucket : one.buckets) {
      for (const std::size_t parameter : one.iteration.missing_in(bucket)) {
        one.iteration.note(one.iteration.complaint_about_missing(parameter));
      }
    }
    greatest = std::max(greatest, word_of(one.iteration.take_noted()));
  }
  const Complaint told = complaint_in(greatest);
  EXPECT_EQ(told.what, Wrong::twice) << "it is told before what is missing";
  EXPECT_EQ(told.rank, 2);
  for (const OneRank& one : ranks) {
    EXPECT_EQ(one.iteration.text_of(told), ranks[0].iteration.text_of(told));
  }
}

TEST(Recorder, AddsUpWhatBucketsTook) {
  const auto at = [](int us) {
    return Clock::time_point(std::chrono::seconds(1)) + std::chrono::microseconds(us);
  };
  Recorder recorder(true, 6);
  for (int iteration = 1; iteration <= 2; ++iteration) {
    recorder.begin(at(0), 2);
    recorder.mark("p1", at(5));
    recorder.fill(0, at(10));
    recorder.fill(1, at(40));
    recorder.round(0, {recorder.filled(0), at(12), at(13), at(30), at(31), 400});
    recorder.round(1, {recorder.filled(1), at(41), at(41), at(60), at(65), 100});
    recorder.trace("bucket 1", {at(40), at(41), at(41), at(60), at(65), 100});
    recorder.end({at(45), at(66), std::vector<std::uint32_t>{1, 0}, iteration == 1});
    const GradientStatistics& statistics = recorder.statistics();
    EXPECT_EQ(statistics.iteration, static_cast<std::uint64_t>(iteration));
    EXPECT_EQ(statistics.bytes, 500U);
    EXPECT_EQ(statistics.arrival, (std::vector<std::uint32_t>{1, 0}));
    EXPECT_EQ(statistics.compute_us, 45);
    EXPECT_EQ(statistics.exposed_us, 21);
    EXPECT_EQ(statistics.transfer_us, 19 + 24);
    EXPECT_EQ(statistics.hidden_fraction, 1 - 21.0 / 43);
    EXPECT_EQ(statistics.reordered, iteration == 1);
    ASSERT_EQ(statistics.buckets.size(), 2U);
    EXPECT_EQ(statistics.buckets[0].ready_us, 10);
    EXPECT_EQ(statistics.buckets[0].start_us, 12);
    EXPECT_EQ(statistics.buckets[1].end_us, 65);
  }
  // In each iteration a mark and three spans of bucket 1: queue, transfer, unpacking. Packing took
  // no time: no span.
  EXPECT_EQ(recorder.timeline().size(), 2U * (1 + 3));
}

}  // namespace
}  // namespace rondo::detail

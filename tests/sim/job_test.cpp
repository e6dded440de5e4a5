// Steps whose length is worked out by hand, timelines, and which bucket is the best.

#include "bench/sim/job.hpp"

#include <fstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "bench/sim/estimate.hpp"

namespace rondo::sim {
namespace {

// A byte takes 1 us, and each call 5.
double call_of(std::size_t bytes) { return bytes == 64 ? 5 : 5 + static_cast<double>(bytes); }

std::string written(const std::string& name, const std::string& text) {
  const std::string file = ::testing::TempDir() + name;
  std::ofstream(file) << text;
  return file;
}

std::string error_of(const std::string& file) {
  try {
    read_trace(file);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

// The gradient that is ready at 30 travels after the small call, from 35 to 80; the next waits for
// it, and ends at 125; then nothing travels until the last is ready.
TEST(StepTime, FollowsTheBuckets) {
  const Job job{220, {{40, 30}, {40, 70}, {40, 220}}};
  const StepTime time = step_time(job, 40, 1, call_of);
  EXPECT_DOUBLE_EQ(time.call_us, 5 + 3 * 45 + 5);
  EXPECT_DOUBLE_EQ(time.exposed_us, 45 + 5);
  EXPECT_DOUBLE_EQ(time.step_us, 220 + 50);
}

TEST(StepTime, HasLessToDoInOneBucketAndLaterOn) {
  const Job job{220, {{40, 30}, {40, 70}, {40, 220}}};
  const StepTime time = step_time(job, 1000, 1, call_of);
  EXPECT_DOUBLE_EQ(time.call_us, 5 + 125 + 5);
  EXPECT_DOUBLE_EQ(time.exposed_us, 125 + 5);
}

// The slowest rank computes half as long again, the forward pass, too.
TEST(StepTime, WaitsForTheSlowestRank) {
  const Job job{220, {{40, 30}, {40, 70}, {40, 220}}};
  EXPECT_DOUBLE_EQ(step_time(job, 40, 1.5, call_of).step_us, 330 + 50);
}

TEST(JobOfAModel, HasItsGradientsFromTheLastOn) {
  const Job job = job_of({{"a", 100, 1}, {"b", 50, 3}}, 400, 30);
  ASSERT_EQ(job.gradients.size(), 2U);
  EXPECT_EQ(job.gradients[0].bytes, 200U);
  EXPECT_DOUBLE_EQ(job.gradients[0].ready_us, 330);
  EXPECT_EQ(job.gradients[1].bytes, 400U);
  EXPECT_DOUBLE_EQ(job.gradients[1].ready_us, 430);
}

TEST(Trace, GivesTheMediansOfRankZero) {
  const auto iteration = [](int number, int start, int ready, int pid) {
    const std::string args = R"("args":{"iteration":)" + std::to_string(number) + R"(,"bytes":)";
    const std::string common = R"("pid":)" + std::to_string(pid) + R"(,"ts":)";
    return R"({"ph":"X","cat":"compute","name":"update, load, forward","dur":7,)" + common +
           std::to_string(start) + "," + args + R"(0}},)" +
           R"({"ph":"X","cat":"compute","name":"backprop","dur":100,)" + common +
           std::to_string(start + 7) + "," + args + R"(0}},)" + R"({"ph":"b","cat":"queue",)" +
           common + std::to_string(start + 7 + ready) + "," + args + R"(4096}},)" +
           R"({"ph":"b","cat":"queue",)" + common + std::to_string(start + 107) + "," + args +
           R"(64}})";
  };
  const Job job = read_trace(written(
      "trace.json", R"({"traceEvents":[{"ph":"M","pid":0,"name":"process_name"},)" +
                        iteration(0, 1000, 90, 0) + "," + iteration(1, 2000, 40, 0) + "," +
                        iteration(2, 3000, 45, 0) + "," + iteration(2, 9000, 99, 1) + "]}"));
  EXPECT_DOUBLE_EQ(job.computed_us, 107);
  ASSERT_EQ(job.gradients.size(), 2U);
  EXPECT_EQ(job.gradients[0].bytes, 4096U);
  EXPECT_DOUBLE_EQ(job.gradients[0].ready_us, 52);
  EXPECT_EQ(job.gradients[1].bytes, 64U);
  EXPECT_DOUBLE_EQ(job.gradients[1].ready_us, 107);
}

TEST(Trace, ThatCannotBeUsedIsNamed) {
  EXPECT_NE(error_of("/nowhere.json").find("'/nowhere.json' cannot be read"), std::string::npos);
  EXPECT_NE(error_of(written("half.json", R"({"traceEvents":[)")).find("half.json"),
            std::string::npos);
  EXPECT_NE(error_of(written("empty.json", R"({"traceEvents":[]})")).find("no iteration"),
            std::string::npos);
}

Question question_of(const Job& job) {
  Question question;
  question.network.latency_us = 100;
  question.ranks = {4};
  question.strategies = {Strategy::ring};
  question.job = job;
  question.bucket_bytes = {std::size_t{1} << 12U, std::size_t{1} << 16U, std::size_t{1} << 26U};
  return question;
}

// Messages have a price, so that 64 KiB at once are faster than in 16 pieces, and both sooner done
// than all at the end.
TEST(Answers, TakeTheBestBucket) {
  Job job{100e3, {}};
  for (int i = 0; i < 1600; ++i) {
    job.gradients.push_back({4096, 100e3 * (i + 1) / 1600});
  }
  const std::vector<Answer> answers = answers_to(question_of(job));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].bytes, std::size_t{1} << 16U);
  EXPECT_GT(answers[0].exposed_us.median, 0);
  EXPECT_DOUBLE_EQ(answers[0].step_us.median, 100e3 + answers[0].exposed_us.median);
}

TEST(Answers, VaryWithTheRanksThatCompute) {
  Question question = question_of({100e3, {{4096, 100e3}}});
  question.compute_spread = 0.1;
  const Spread few = answers_to(question)[0].step_us;
  EXPECT_LT(few.low, few.high);
  question.ranks = {1000};
  question.network.latency_us = 0;
  EXPECT_GT(answers_to(question)[0].step_us.median, 1.25 * 100e3)
      << "the slowest of 1000 is some three standard deviations late";
}

TEST(Answers, SayWhatCouldNotBeSimulated) {
  Question question = question_of({100, {{4096, 100}}});
  question.ranks = {2, 5000};
  question.strategies = {Strategy::halving_doubling, Strategy::server};
  const std::vector<Answer> answers = answers_to(question);
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0].objection, "");
  EXPECT_NE(answers[2].objection, "");
  EXPECT_GT(answers[3].step_us.median, 0);
}

}  // namespace
}  // namespace rondo::sim

// Errors: which rank gets which message.

#include <atomic>
#include <functional>
#include <latch>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/mismatch_matrix.hpp"
#include "tests/support/ranks.hpp"

namespace rondo::test {
namespace {

using std::chrono::milliseconds;

template <class ErrorType, class Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const ErrorType& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return {};
  }
  ADD_FAILURE() << "no error";
  return {};
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(Usage, WrongArgumentsAreErrorsAndNothingIsLost) {
  std::vector<Communicator> group = local_group(1);
  Communicator& comm = group[0];
  std::vector<float> data(8, 1.0F);
  std::vector<int> integers(8, 1);

  expect_contains(
      message_of<UsageError>([&] {
        comm.run(
            {.collective = Collective::all_reduce, .in = nullptr, .out = data.data(), .count = 8});
      }),
      "`in` is null");
  expect_contains(
      message_of<UsageError>([&] {
        comm.run(
            {.collective = Collective::all_reduce, .in = data.data(), .out = nullptr, .count = 8});
      }),
      "`out` is null");
  expect_contains(message_of<UsageError>(
                      [&] { comm.all_reduce(std::span(data).first(6), std::span(data).last(6)); }),
                  "overlap");
  expect_contains(message_of<UsageError>([&] { comm.broadcast(data, 1); }), "root 1 is not a rank");
  expect_contains(message_of<UsageError>([&] { comm.reduce(data, -1); }), "root -1 is not a rank");
  expect_contains(message_of<UsageError>([&] { comm.all_reduce(integers, ReduceOp::avg); }),
                  "avg is not defined for i32");
  expect_contains(message_of<UsageError>(
                      [&] { comm.all_reduce(std::span(data).first(2), std::span(data).last(3)); }),
                  "`out` has 3 elements, it must have 2");
  expect_contains(message_of<UsageError>(
                      [&] { comm.all_reduce(data, ReduceOp::sum, {.timeout = milliseconds(0)}); }),
                  "timeout");
  expect_contains(message_of<UsageError>([&] {
                    comm.run({.collective = Collective::all_reduce,
                              .in = data.data(),
                              .out = data.data(),
                              .count = SIZE_MAX});
                  }),
                  "address space");
  expect_contains(
      message_of<UsageError>([&] {
        comm.run({.collective = Collective::all_reduce, .type = static_cast<DataType>(99)});
      }),
      "not a DataType");
  expect_contains(
      message_of<UsageError>([&] { comm.run({.collective = Collective::barrier, .count = 10}); }),
      "no elements");
  expect_contains(message_of<UsageError>(
                      [&] { static_cast<void>(comm.all_reduce_async(integers, ReduceOp::avg)); }),
                  "avg is not defined");
  // Adjacent buffers do not overlap, and after all these errors the communicator works.
  comm.all_reduce(std::span(data).first(4), std::span(data).last(4));
  EXPECT_EQ(data, std::vector<float>(8, 1.0F));
}

// The value after the last enumerator of each type is refused.
TEST(Usage, EnumeratorsOutOfRangeAreErrors) {
  std::vector<Communicator> group = local_group(1);
  std::vector<float> data(8, 1.0F);
  const auto refusal_of = [&](auto&& change) {
    Call call{
        .collective = Collective::all_reduce, .in = data.data(), .out = data.data(), .count = 8};
    change(call);
    return message_of<UsageError>([&] { group[0].run(call); });
  };
  expect_contains(refusal_of([](Call& call) { call.type = static_cast<DataType>(kDataTypeCount); }),
                  "not a DataType");
  expect_contains(refusal_of([](Call& call) { call.op = static_cast<ReduceOp>(kReduceOpCount); }),
                  "not a ReduceOp");
  const auto no_algorithm = static_cast<Algorithm>(kAlgorithmCount);
  expect_contains(refusal_of([&](Call& call) { call.options.algorithm = no_algorithm; }),
                  "not an Algorithm");
  expect_contains(message_of<UsageError>([&] { local_group(2, {.algorithm = no_algorithm}); }),
                  "not an Algorithm");
  EXPECT_THROW(local_group(2, {.carrier = static_cast<CarrierChoice>(9)}), UsageError);
}

TEST(Usage, OptionsOutOfRangeAreErrors) {
  EXPECT_THROW(local_group(0), UsageError);
  EXPECT_THROW(local_group(-3), UsageError);
  EXPECT_THROW(local_group(2, {.slots = 1}), UsageError);
  EXPECT_THROW(local_group(2, {.slot_bytes = 100}), UsageError);
  EXPECT_THROW(local_group(2, {.timeout = milliseconds(-1)}), UsageError);
  EXPECT_THROW(local_group(2, {.carrier = CarrierChoice::mpi}), UsageError);
  ::setenv("RONDO_TIMEOUT", "soon", 1);
  expect_contains(message_of<UsageError>([] { local_group(2); }), "RONDO_TIMEOUT is 'soon'");
  ::unsetenv("RONDO_TIMEOUT");
}

// Runs a call that differs between the ranks. Every rank must fail, and the error of the rank that
// notices first must name both ranks and both calls.
void expect_mismatch(const std::function<void(Communicator&)>& call,
                     const std::vector<std::string>& parts) {
  std::mutex mutex;
  std::string mismatch;
  std::atomic<int> failed = 0;
  run_ranks(2, {.timeout = std::chrono::seconds(60)}, [&](Communicator& comm) {
    try {
      call(comm);
    } catch (const MismatchError& error) {
      const std::lock_guard lock(mutex);
      mismatch = error.what();
      ++failed;
    } catch (const PeerError&) {
      ++failed;
    }
    // The communicator has ended; a later call says why at once.
    std::vector<float> data(1);
    expect_contains(message_of<PeerError>([&] { comm.all_reduce(data); }), "Make the same calls");
  });
  EXPECT_EQ(failed, 2);
  for (const std::string& part : parts) expect_contains(mismatch, part);
}

TEST(Mismatch, OfCountsNamesBothCalls) {
  expect_mismatch(
      [](Communicator& comm) {
        std::vector<float> data(static_cast<std::size_t>(100 + comm.rank()));
        comm.all_reduce(data);
      },
      {"rank 0", "rank 1", "all_reduce(100 x f32, sum)", "all_reduce(101 x f32, sum)"});
}

TEST(Mismatch, OfAnEmptyAndAFullCall) {
  expect_mismatch(
      [](Communicator& comm) {
        std::vector<float> data(comm.rank() == 0 ? 0 : 5000);
        comm.all_reduce(data);
      },
      {"all_reduce(0 x f32, sum)", "all_reduce(5000 x f32, sum)"});
}

TEST(Mismatch, OfTypes) {
  expect_mismatch(
      [](Communicator& comm) {
        std::vector<float> floats(10);
        std::vector<int> integers(10);
        if (comm.rank() == 0) {
          comm.all_reduce(floats);
        } else {
          comm.all_reduce(integers);
        }
      },
      {"10 x f32", "10 x i32"});
}

TEST(Mismatch, OfReductions) {
  expect_mismatch(
      [](Communicator& comm) {
        std::vector<float> data(10);
        comm.all_reduce(data, comm.rank() == 0 ? ReduceOp::sum : ReduceOp::max);
      },
      {"f32, sum", "f32, max"});
}

TEST(Mismatch, OfCollectives) {
  expect_mismatch(
      [](Communicator& comm) {
        std::vector<float> data(10);
        if (comm.rank() == 0) {
          comm.all_reduce(data);
        } else {
          comm.barrier();
        }
      },
      {"all_reduce", "barrier"});
}

TEST(Mismatch, OfAlgorithms) {
  expect_mismatch(
      [](Communicator& comm) {
        std::vector<float> data(10);
        comm.all_reduce(data, ReduceOp::sum,
                        {.algorithm = comm.rank() == 0 ? Algorithm::ring : Algorithm::naive});
      },
      {"by ring", "by naive", "RONDO_ALGO"});
}

// one_shot and ring use different memory, so no rank finds a slot of the other call. Each rank
// learns the other's call from its presence.
TEST(Mismatch, OfOneShotAndRing) {
  expect_mismatch(
      [](Communicator& comm) {
        std::vector<float> data(10);
        comm.all_reduce(data, ReduceOp::sum,
                        {.algorithm = comm.rank() == 0 ? Algorithm::ring : Algorithm::one_shot});
      },
      {"by ring", "by one_shot"});
}

// A rank in the middle of a chain is through with it before the last one has begun.
TEST(Mismatch, WithARankThatHasGoneOn) {
  std::atomic<int> told = 0;
  run_ranks(3, {.timeout = std::chrono::seconds(10)}, [&](Communicator& comm) {
    std::vector<float> data(10);
    const CallOptions by_ring{.algorithm = Algorithm::ring};
    try {
      if (comm.rank() < 2) {
        comm.broadcast(data, 0, by_ring);
        EXPECT_EQ(comm.rank(), 1) << "the root must hear of the last rank";
        comm.barrier(by_ring);
      } else {
        comm.barrier({.algorithm = Algorithm::one_shot});
      }
    } catch (const Error& error) {
      expect_contains(error.what(), "broadcast(10 x f32");
      expect_contains(error.what(), "barrier() by one_shot");
      ++told;
    }
  });
  EXPECT_EQ(told, 3);
}

// The rank in the middle of the chain is through with its last call before the last rank makes
// another.
TEST(Mismatch, ThatARankCannotLearnFromACallIsLogged) {
  std::vector<std::string> lines;
  std::mutex mutex;
  set_log_hook([&](LogLevel, std::string_view text) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(text);
  });
  std::vector<Communicator> group = local_group(3, {.timeout = std::chrono::seconds(10)});
  std::latch middle_rank_is_through(1);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<float> data(10);
      try {
        if (rank == 2) {
          middle_rank_is_through.wait();
          group[rank].barrier({.algorithm = Algorithm::ring});
        } else {
          group[rank].broadcast(data, 0, {.algorithm = Algorithm::ring});
        }
        EXPECT_EQ(rank, 1U);
      } catch (const Error&) {
        EXPECT_NE(rank, 1U);
      }
      if (rank == 1) middle_rank_is_through.count_down();
    });
  }
  for (std::thread& thread : threads) thread.join();
  group.clear();
  set_log_hook({});
  ASSERT_FALSE(lines.empty());
  expect_contains(lines.back(),
                  "rank 1: the communicator is destroyed; after this rank's last call");
  expect_contains(lines.back(), "Make the same calls");
}

// Of three ranks, 0 and 1 broadcast from rank 0 by ring; rank 1, in the middle, then destroys its
// communicator at once. Rank 2 calls `instead`: if `after`, when rank 1 has destroyed its
// communicator, else when it is about to. Returns the lines that rank 1 logs.
std::vector<std::string> logged_of_the_middle_rank(
    bool after, const std::function<void(Communicator&)>& instead) {
  std::vector<std::string> lines;
  std::mutex mutex;
  set_log_hook([&](LogLevel, std::string_view text) {
    const std::lock_guard lock(mutex);
    if (text.starts_with("rank 1")) lines.emplace_back(text);
  });
  std::vector<Communicator> group = local_group(3, {.timeout = std::chrono::seconds(10)});
  std::latch middle_rank_ends(1);
  std::latch middle_rank_is_gone(1);
  std::vector<std::thread> threads;
  threads.emplace_back([&, comm = std::move(group[0])]() mutable {
    std::vector<float> data(10);
    EXPECT_THROW(comm.broadcast(data, 0, {.algorithm = Algorithm::ring}), Error);
  });
  threads.emplace_back([&, comm = std::optional(std::move(group[1]))]() mutable {
    std::vector<float> data(10);
    try {
      CallOptions options{.algorithm = Algorithm::ring};
      if (after) options.timeout = milliseconds(500);
      comm->broadcast(data, 0, options);
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    middle_rank_ends.count_down();
    comm.reset();
    middle_rank_is_gone.count_down();
  });
  threads.emplace_back([&, comm = std::move(group[2])]() mutable {
    middle_rank_ends.wait();
    if (after) middle_rank_is_gone.wait();
    instead(comm);
  });
  for (std::thread& thread : threads) thread.join();
  set_log_hook({});
  return lines;
}

void broadcast_from_rank_2(Communicator& comm) {
  std::vector<float> data(10);
  EXPECT_THROW(comm.broadcast(data, 2, {.algorithm = Algorithm::ring}), Error);
}

TEST(Mismatch, ThatComesDuringADestructorIsLogged) {
  const auto lines = logged_of_the_middle_rank(false, broadcast_from_rank_2);
  ASSERT_EQ(lines.size(), 1U);
  expect_contains(lines[0], "Make the same calls");
}

TEST(Mismatch, WithARankThatLeavesDuringADestructorIsLogged) {
  const auto lines = logged_of_the_middle_rank(
      false, [](Communicator& comm) { const Communicator gone = std::move(comm); });
  ASSERT_EQ(lines.size(), 1U);
  expect_contains(lines[0], "rank 2 has destroyed its communicator");
}

TEST(Mismatch, ThatADestructorHasNoTimeToLearnOfIsLogged) {
  const auto lines = logged_of_the_middle_rank(true, broadcast_from_rank_2);
  ASSERT_EQ(lines.size(), 1U);
  expect_contains(lines[0], "it is not known whether all ranks made call 0 broadcast(10 x f32");
}

TEST(Chains, NoRankEndsTwoWithoutARankThatIsLate) {
  std::atomic<int> most = 0;
  for (const int ranks : {3, 4, 5}) {
    for (const LateRank& late : every_late_rank(ranks)) {
      run_ranks(ranks, {}, [&](Communicator& comm) {
        const int ended = chains_ended_without(comm, late);
        if (ended == 1) most = 1;
        EXPECT_LE(ended, 1) << "rank " << comm.rank() << " of " << ranks << ", "
                            << name(late.collective) << " by " << name(late.algorithm) << ", rank "
                            << late.rank << " is late, roots " << late.stride << " apart";
      });
    }
  }
  EXPECT_EQ(most, 1) << "no rank has ended a call, so that nothing was tried";
}

TEST(Mismatch, OfCountsThatChooseDifferentAlgorithms) {
  expect_mismatch(
      [](Communicator& comm) {
        std::vector<float> data(comm.rank() == 0 ? 10 : 1000000);
        comm.all_reduce(data);
      },
      {"10 x f32", "1000000 x f32"});
}

TEST(Timeout, NamesThePeerAndTheCall) {
  run_ranks(2, {}, [](Communicator& comm) {
    if (comm.rank() == 1) return;  // never makes the call
    std::vector<float> data(10);
    const std::string text = message_of<TimeoutError>(
        [&] { comm.all_reduce(data, ReduceOp::sum, {.timeout = milliseconds(50)}); });
    expect_contains(text, "rank 0 waited for rank 1");
    expect_contains(text, "all_reduce(10 x f32, sum)");
    expect_contains(text, "RONDO_TIMEOUT");
  });
}

// A rank may wait for a rank that has made the call. Its error must still name rank 2, which has
// not.
TEST(Timeout, NamesTheRankThatHasNotMadeTheCall) {
  std::mutex mutex;
  std::vector<std::string> texts;
  run_ranks(5, {.timeout = milliseconds(1000)}, [&](Communicator& comm) {
    comm.barrier();  // all threads run
    if (comm.rank() == 2) return;
    std::vector<float> data(10);
    try {
      comm.all_reduce(data);
      ADD_FAILURE() << "rank " << comm.rank() << " noticed nothing";
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      texts.emplace_back(error.what());
    }
  });
  ASSERT_EQ(texts.size(), 4U);
  for (const std::string& text : texts) {
    expect_contains(text, "Ranks that have not made that call: 2.");
  }
}

TEST(Timeout, TheLongestIsNotPastAtOnce) {
  run_ranks(2, {.timeout = milliseconds::max()}, [](Communicator& comm) {
    for (int call = 0; call < 100; ++call) comm.barrier();
  });
}

TEST(Timeout, OfAnAsynchronousCallSurfacesInWait) {
  run_ranks(2, {.timeout = milliseconds(50)}, [](Communicator& comm) {
    if (comm.rank() == 1) return;
    std::vector<float> data(10);
    const Work work = comm.all_reduce_async(data);
    message_of<TimeoutError>([&] { work.wait(); });
    EXPECT_TRUE(work.done());
    message_of<TimeoutError>([&] { work.wait(); });  // every wait() throws it
  });
}

TEST(Timeout, TheEnvironmentSetsTheDefault) {
  ::setenv("RONDO_TIMEOUT", "0.05", 1);
  run_ranks(2, {}, [](Communicator& comm) {
    if (comm.rank() == 1) return;
    EXPECT_THROW(comm.barrier(), TimeoutError);
  });
  ::unsetenv("RONDO_TIMEOUT");
}

TEST(Abort, EndsACallInProgressOnEveryRank) {
  std::vector<Communicator> group = local_group(3);
  std::vector<std::thread> threads;
  std::atomic<int> told = 0;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const std::string text =
          message_of<PeerError>([&] { group[static_cast<std::size_t>(rank)].barrier(); });
      expect_contains(text, "rank 2 has ended the communicator: no more data");
      ++told;
    });
  }
  group[2].abort("no more data");
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told, 2);
  message_of<PeerError>([&] { group[2].barrier(); });
}

// A rank whose trainer throws will not make the calls that the others wait for.
// A monitor on another thread asks.
TEST(Abort, IsSeenWithoutACall) {
  std::vector<Communicator> group = local_group(3);
  for (const Communicator& comm : group) EXPECT_FALSE(comm.ended());
  std::vector<float> data(8);
  EXPECT_THROW(group[1].broadcast(data, 7), UsageError);
  EXPECT_FALSE(group[1].ended());
  group[2].abort("no more data");
  for (const Communicator& comm : group) EXPECT_TRUE(comm.ended());
  std::optional<Communicator> alone = std::move(local_group(1)[0]);
  EXPECT_FALSE(alone->ended());
}

TEST(Abort, AnExceptionThatUnwindsARankEndsTheOthers) {
  try {
    run_ranks(2, {}, [](Communicator& comm) {
      Communicator mine = std::move(comm);
      if (mine.rank() == 1) throw std::runtime_error("out of data");
      const std::string text = message_of<PeerError>([&] { mine.barrier(); });
      expect_contains(text, "an exception ended the scope");
    });
    FAIL() << "the exception is lost";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "out of data");
  }
}

TEST(Abort, EndsWhatIsQueued) {
  std::vector<Communicator> group = local_group(2);
  std::vector<float> data(10);
  const Work first = group[0].all_reduce_async(data);
  const Work second = group[0].barrier_async();
  group[1].abort("stop");
  EXPECT_THROW(first.wait(), PeerError);
  EXPECT_THROW(second.wait(), PeerError);
}

// A hook is called on the thread that runs the call, which shows where that is.
TEST(Log, TheHookIsToldOnTheThreadThatRunsTheCall) {
  std::vector<std::string> lines;
  std::thread::id where;
  set_log_hook([&](LogLevel level, std::string_view text) {
    EXPECT_EQ(level, LogLevel::warning);
    lines.emplace_back(text);
    where = std::this_thread::get_id();
  });
  std::vector<Communicator> blocking = local_group(2, {.timeout = milliseconds(20)});
  EXPECT_THROW(blocking[0].barrier(), TimeoutError);
  EXPECT_EQ(where, std::this_thread::get_id());
  std::vector<Communicator> queued = local_group(2, {.timeout = milliseconds(20)});
  EXPECT_THROW(queued[0].barrier_async().wait(), TimeoutError);
  EXPECT_NE(where, std::this_thread::get_id());
  set_log_hook({});
  ASSERT_EQ(lines.size(), 2U);
  expect_contains(lines[0], "rank 0 waited for rank 1");
}

TEST(Log, NothingIsPrintedUnasked) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  std::vector<Communicator> group = local_group(2, {.timeout = milliseconds(20)});
  EXPECT_THROW(group[0].barrier(), TimeoutError);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace rondo::test

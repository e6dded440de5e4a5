// Reductions by functions of the program, on ranks that are threads and processes.

#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include <gtest/gtest.h>

#include "tests/support/errors.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/user_reduction_checks.hpp"

namespace rondo::test {
namespace {

const CommunicatorOptions kSmallSlots{.slot_bytes = 256, .slots = 4};

class UserReductions : public ::testing::TestWithParam<int> {};

TEST_P(UserReductions, OfEverySizeInOrder) {
  for (const CommunicatorOptions& options : {kSmallSlots, CommunicatorOptions{}}) {
    run_ranks(GetParam(), options, [](Communicator& comm) {
      check_user_reductions(comm);
      check_large_elements(comm);
    });
  }
}

TEST_P(UserReductions, ByEveryAlgorithm) {
  run_ranks(GetParam(), {}, [](Communicator& comm) {
    for (const Algorithm algorithm : {Algorithm::one_shot, Algorithm::direct}) {
      for (const std::size_t count : {0U, 1U, 7U, 301U}) {
        for (const bool commutative : {true, false}) {
          UserReductionCheck(comm, count, 24, commutative, algorithm).all();
        }
      }
    }
    check_user_reductions(comm, Algorithm::chain);
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::naive}) {
      for (const std::size_t count : {0U, 1U, 7U, 30'001U}) {
        UserReductionCheck(comm, count, 24, true, algorithm).all();
      }
    }
  });
}

TEST_P(UserReductions, BetweenProcesses) {
  const int size = GetParam();
  const std::vector<int> codes = run_forked(size, [](const ForkedRank& me) {
    for (const CommunicatorOptions& options : {kSmallSlots, CommunicatorOptions{}}) {
      Communicator comm = from_socket(me.socket, me.rank, me.size, options);
      check_user_reductions(comm);
      check_large_elements(comm);
      if (me.size == 1) continue;
      for (const bool commutative : {true, false}) {
        UserReductionCheck check(comm, 30'001, 24, commutative, Algorithm::hierarchical);
        check.all_reduce();
      }
    }
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(size), 0));
}

INSTANTIATE_TEST_SUITE_P(Sizes, UserReductions, ::testing::Values(1, 2, 3, 4, 5));

TEST(UserReduction, OfTypedElements) {
  struct Best {
    double score;
    int who;
  };
  run_ranks(4, {}, [](Communicator& comm) {
    const auto best =
        reduction_of<Best>([](const Best& a, const Best& b) { return a.score >= b.score ? a : b; });
    Best mine{comm.rank() == 2 ? 9.5 : comm.rank(), comm.rank()};
    comm.all_reduce(std::span(&mine, 1), best);
    EXPECT_EQ(mine.who, 2);
    EXPECT_EQ(mine.score, 9.5);
  });
}

// The least and the greatest value, and where; of equal ones at the least index; a NaN wins.
TEST(UserReduction, FindsWhereTheLeastAndTheGreatestAre) {
  run_ranks(4, {}, [](Communicator& comm) {
    using Pair = Located<float>;
    static_assert(sizeof(Pair) == 8);
    const auto rank = static_cast<float>(comm.rank());
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<Pair> in = {{rank, comm.rank()},
                                  {-rank, comm.rank()},
                                  {comm.rank() % 2 == 1 ? 5.0F : 1.0F, 10 - comm.rank()},
                                  {comm.rank() == 1 || comm.rank() == 2 ? nan : rank, comm.rank()}};
    std::vector<Pair> out(in.size());
    comm.all_reduce(in, out, min_location<float>());
    EXPECT_EQ(out[0], (Pair{0, 0}));
    EXPECT_EQ(out[1], (Pair{-3, 3}));
    EXPECT_EQ(out[2], (Pair{1, 8}));
    EXPECT_TRUE(std::isnan(out[3].value));
    EXPECT_EQ(out[3].index, 1);
    comm.all_reduce(in, out, max_location<float>());
    EXPECT_EQ(out[0], (Pair{3, 3}));
    EXPECT_EQ(out[1], (Pair{0, 0}));
    EXPECT_EQ(out[2], (Pair{5, 7}));
    EXPECT_TRUE(std::isnan(out[3].value));
    EXPECT_EQ(out[3].index, 1);
  });
}

// What the ranks of two are told where `second` differs from `first`.
std::vector<std::string> errors_of(const std::function<void(Communicator&)>& first,
                                   const std::function<void(Communicator&)>& second) {
  std::vector<std::string> errors(2);
  run_ranks(2, {.timeout = std::chrono::seconds(60)}, [&](Communicator& comm) {
    try {
      comm.rank() == 0 ? first(comm) : second(comm);
      comm.barrier();
    } catch (const std::exception& error) {
      errors[static_cast<std::size_t>(comm.rank())] = error.what();
    }
  });
  return errors;
}

UserReduction sum_of(std::size_t element_bytes, bool commutative = true) {
  UserReduction reduction;
  reduction.element_bytes = element_bytes;
  reduction.commutative = commutative;
  reduction.combine = [](const void*, void*, std::size_t) {};
  return reduction;
}

TEST(UserReduction, OneThatDiffersIsAMismatch) {
  const auto with = [](std::size_t element_bytes, bool commutative) {
    return [=](Communicator& comm) {
      std::vector<std::uint8_t> data(64);
      comm.all_reduce(data, sum_of(element_bytes, commutative));
    };
  };
  const auto built_in = [](Communicator& comm) {
    std::vector<std::uint8_t> data(64);
    comm.all_reduce(data);
  };
  const std::string ours = "all_reduce(64 bytes, a reduction of the program with digest 911)";
  for (const auto& second : std::initializer_list<std::function<void(Communicator&)>>{
           with(16, true), with(8, false), built_in}) {
    for (const std::string& error : errors_of(with(8, true), second)) {
      EXPECT_NE(error.find(ours), std::string::npos) << error;
    }
  }
}

// Also where it has the type of an error that all ranks of a call get together, or is no exception
// of the C++ library.
TEST(UserReduction, WhatItThrowsEndsTheCommunicator) {
  const auto thrower = [](const auto& thrown) {
    return [thrown](Communicator& comm) {
      UserReduction reduction = sum_of(4);
      reduction.combine = [thrown, rank = comm.rank()](const void*, void*, std::size_t) {
        if (rank == 0) throw thrown;  // NOLINT(bugprone-std-exception-baseclass): programs do
      };
      std::vector<float> data(100);
      try {
        comm.all_reduce(data, reduction);
      } catch (const std::remove_cvref_t<decltype(thrown)>&) {
        throw std::runtime_error("rank 0 got what it threw");
      }
    };
  };
  const auto expect = [](const std::function<void(Communicator&)>& call, const std::string& text) {
    const std::vector<std::string> errors = errors_of(call, call);
    EXPECT_EQ(errors[0], "rank 0 got what it threw");
    EXPECT_NE(errors[1].find(text), std::string::npos) << errors[1];
  };
  expect(thrower(std::invalid_argument("no such sum")), "no such sum");
  expect(thrower(UsageError("no such sum")), "no such sum");
  expect(thrower(42), "what was thrown is no std::exception");
}

TEST(UserReduction, CallsThatCannotBeMadeAreRefused) {
  run_ranks(2, {}, [](Communicator& comm) {
    const auto refused = [&](const std::function<void()>& call, const std::string& why) {
      const std::string text = usage_error(call);
      EXPECT_NE(text.find(why), std::string::npos) << text;
    };
    std::vector<std::uint8_t> data(20);
    refused([&] { comm.all_reduce(data, sum_of(8)); },
            "`in` has 20 bytes, which are no whole elements of 8 bytes");
    refused([&] { comm.all_reduce(data, sum_of(0)); }, "has elements of 0 bytes");
    refused([&] { comm.all_reduce(data, UserReduction{.combine = {}, .element_bytes = 4}); },
            "has no function");
    refused([&] { comm.all_reduce(data, sum_of(4, false), {.algorithm = Algorithm::ring}); },
            "ring does not reduce in the order of ranks");
    refused(
        [&] {
          std::vector<std::uint8_t> large(std::size_t{4} << 20U);
          comm.all_reduce(large, sum_of(large.size()), {.algorithm = Algorithm::ring});
        },
        "ring carries elements of up to");
    const UserReduction reduction = sum_of(1);
    Call call;
    call.collective = Collective::broadcast;
    call.reduction = &reduction;
    refused([&] { comm.run(call); }, "a UserReduction is for all_reduce");
    comm.all_reduce(data, sum_of(4));  // the communicator goes on
  });
}

}  // namespace
}  // namespace rondo::test

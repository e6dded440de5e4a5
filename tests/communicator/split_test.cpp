// Communicators of some of a communicator's ranks.

#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "communicator/group_bootstrap.hpp"
#include "communicator/state.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/split_checks.hpp"

namespace rondo::test {
namespace {

TEST(Split, ByColorInTheOrderOfKeys) {
  for (const int size : {1, 2, 5}) run_ranks(size, {}, expect_groups_by_color);
}

TEST(Split, ARankWithoutAColorGetsNothing) {
  run_ranks(3, {}, [](Communicator& comm) {
    std::optional<int> color;
    if (comm.rank() != 1) color = 7;
    std::optional<Communicator> group = comm.split(color);
    ASSERT_EQ(group.has_value(), comm.rank() != 1);
    if (group) {
      EXPECT_EQ(group->size(), 2);
      EXPECT_EQ(sum_of_ranks(*group, comm.rank()), 2);
    }
    EXPECT_EQ(sum_of_ranks(comm, comm.rank()), 3);
  });
}

TEST(Split, TakesOverTheOptions) {
  run_ranks(2, {.timeout = std::chrono::seconds(47), .algorithm = Algorithm::naive},
            [](Communicator& comm) {
              Communicator same = comm.duplicate();
              EXPECT_EQ(same.algorithm_for({.collective = Collective::barrier}), Algorithm::naive);
              EXPECT_EQ(detail::state_of(same).defaults.timeout, std::chrono::seconds(47));
            });
}

// The parent outlives its child, and the child its parent.
TEST(Split, ACommunicatorAndItsPartsEndAndFailByThemselves) {
  run_ranks(4, {}, [](Communicator& comm) {
    Communicator parent = comm.duplicate();
    std::optional<Communicator> half = parent.split(comm.rank() / 2);
    half->abort("the test ends it");
    EXPECT_THROW(half->barrier(), PeerError);
    EXPECT_EQ(sum_of_ranks(parent, 1), 4);
    half.reset();
    Communicator child = parent.duplicate();
    child.barrier();  // all ranks are through with duplicate()
    parent.abort("the test ends it");
    EXPECT_THROW(parent.barrier(), PeerError);
    EXPECT_THROW(static_cast<void>(parent.duplicate()), PeerError);
    EXPECT_EQ(sum_of_ranks(child, 1), 4);
    half = child.split(comm.rank() % 2);
    EXPECT_EQ(sum_of_ranks(*half, 1), 2);
  });
}

// Each rank has three communicators, each of which is used by a thread of its own.
TEST(Split, SeveralAreAtWorkAtOnce) {
  run_ranks(3, {}, [](Communicator& comm) {
    std::vector<Communicator> several;
    for (int i = 0; i < 3; ++i) several.push_back(comm.duplicate());
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&several, i] {
        for (int call = 0; call < 200; ++call) {
          ASSERT_EQ(sum_of_ranks(several[static_cast<std::size_t>(i)], i + call), 3 * (i + call));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

// Rank 0 cannot go on. Rank 1, of the same group, learns it; rank 2, of another one, is not
// concerned.
TEST(Split, ARankThatGivesUpFailsItsGroupAlone) {
  run_ranks(3, {}, [](Communicator& comm) {
    const int rank = comm.rank();
    detail::GroupBootstrap group(comm, rank == 2 ? std::vector<int>{2} : std::vector<int>{1, 0});
    if (rank == 1) {
      EXPECT_EQ(group.rank(), 0);
      EXPECT_THROW(group.exchange(1.0), TransportError);
    }
    for (int round = 0; rank == 2 && round < 3; ++round) {
      EXPECT_EQ(group.exchange(round), std::vector<int>{round});
    }
    group.leave();
    EXPECT_EQ(sum_of_ranks(comm, 1), 3);
  });
}

}  // namespace
}  // namespace rondo::test

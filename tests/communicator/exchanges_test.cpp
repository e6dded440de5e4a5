// Messages, gather, scatter, all_to_all, and chunks of different sizes, on groups of ranks in one
// process.

#include <numeric>

#include <gtest/gtest.h>

#include "tests/support/errors.hpp"
#include "tests/support/exchange_checks.hpp"
#include "tests/support/ranks.hpp"

namespace rondo::test {
namespace {

const CommunicatorOptions kSmallSlots{.slot_bytes = 256, .slots = 4};

class Exchange : public ::testing::TestWithParam<int> {};

TEST_P(Exchange, EveryElementComesWhereItBelongs) {
  run_ranks(GetParam(), kSmallSlots, [](Communicator& comm) {
    for (const bool asynchronous : {false, true}) {
      check_exchanges<std::uint8_t>(comm, asynchronous);
      check_exchanges<std::int32_t>(comm, asynchronous);
      check_exchanges<double>(comm, asynchronous);
    }
  });
}

TEST_P(Exchange, LargeOddCountsWithDefaultSlots) {
  run_ranks(GetParam(), {},
            [](Communicator& comm) { ExchangeCheck<std::int32_t>(comm, 345'677, false).all(); });
}

// Slots of a message are still unread when the next call begins.
TEST_P(Exchange, FollowsOtherCalls) {
  run_ranks(GetParam(), {}, [](Communicator& comm) {
    const int size = comm.size();
    for (int call = 0; call < 500; ++call) {
      const std::vector<int> mine = {call, comm.rank()};
      std::vector<int> theirs(2);
      const int peer = call % size;
      if (size > 1 && comm.rank() == peer) comm.send(mine, (peer + 1) % size);
      std::vector<int> sum = {1};
      if (call % 3 == 0) comm.all_reduce(sum);
      if (size > 1 && comm.rank() == (peer + 1) % size) {
        comm.recv(theirs, peer);
        EXPECT_EQ(theirs, (std::vector<int>{call, peer}));
      }
      if (call % 3 == 0) {
        EXPECT_EQ(sum[0], size);
      }
      if (call % 7 == 0) {
        std::vector<int> all(static_cast<std::size_t>(size));
        const std::vector<int> own(all.size(), call + comm.rank());
        comm.all_to_all(own, all);
        for (int from = 0; from < size; ++from) {
          EXPECT_EQ(all[static_cast<std::size_t>(from)], call + from);
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Exchange, ::testing::Values(1, 2, 3, 4, 5, 8));

// What two ranks are told when they make `first` on rank 0 and `second` on rank 1.
std::vector<std::string> errors_of(const std::function<void(Communicator&)>& first,
                                   const std::function<void(Communicator&)>& second) {
  std::vector<std::string> errors(2);
  run_ranks(2, {.timeout = std::chrono::seconds(60)}, [&](Communicator& comm) {
    try {
      comm.rank() == 0 ? first(comm) : second(comm);
      comm.barrier();
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(comm.rank())] = error.what();
    }
  });
  return errors;
}

TEST(Message, AnotherSizeTypeOrCallIsAMismatch) {
  const auto send = [](Communicator& comm) {
    const std::vector<float> data(100);
    comm.send(data, 1);
  };
  const auto receive = [](auto data) {
    return [data](Communicator& comm) mutable { comm.recv(data, 0); };
  };
  const auto expect = [&](const std::function<void(Communicator&)>& other,
                          const std::string& what) {
    for (const std::string& error : errors_of(send, other)) {
      EXPECT_NE(error.find(what), std::string::npos) << error;
    }
  };
  const std::string sent = "but rank 0 sent message 0 from rank 0 (100 x f32)";
  expect(receive(std::vector<float>(99)),
         "rank 1 expects message 0 from rank 0 (99 x f32), " + sent);
  expect(receive(std::vector<int>(100)),
         "rank 1 expects message 0 from rank 0 (100 x i32), " + sent);
  expect(
      [](Communicator& comm) {
        const std::vector<float> in(100);
        std::vector<float> out(100);
        comm.all_to_all(in, out);
      },
      "rank 1 made call 0 all_to_all(100 x f32) by pairwise");
}

TEST(Message, AReceiverThatLeavesOrNeverReceivesIsAnError) {
  run_ranks(2, {.timeout = std::chrono::seconds(60)}, [](Communicator& comm) {
    if (comm.rank() == 1) {
      const Communicator gone = std::move(comm);
      return;
    }
    // More than the edge holds.
    const std::vector<float> data(std::size_t{1} << 20U);
    std::string text;
    try {
      comm.send(data, 1);
    } catch (const PeerError& error) {
      text = error.what();
    }
    EXPECT_NE(text.find("rank 1 has destroyed its communicator and will not make message 0 from "
                        "rank 0 (1048576 x f32)"),
              std::string::npos)
        << text;
  });
  run_ranks(2, {.timeout = std::chrono::milliseconds(200)}, [](Communicator& comm) {
    if (comm.rank() == 1) {
      EXPECT_THROW(comm.barrier({.timeout = std::chrono::seconds(60)}), PeerError);
      return;
    }
    std::vector<float> data(1);
    EXPECT_THROW(comm.recv(data, 1), TimeoutError);
  });
}

// sendrecv sends and receives independently, whatever is at the other ends, and however long the
// messages are.
TEST(Message, ASendrecvGoesWithSendsAndReceives) {
  constexpr std::size_t kCount = 3'000'017;
  const auto data_of = [](int rank) {
    std::vector<int> data(kCount);
    std::iota(data.begin(), data.end(), rank * 1000);
    return data;
  };
  for (const bool receives_first : {true, false}) {
    run_ranks(2, {.timeout = std::chrono::seconds(60)}, [&](Communicator& comm) {
      const std::vector<int> mine = data_of(comm.rank());
      std::vector<int> theirs(kCount);
      if (comm.rank() == 0) {
        comm.sendrecv(mine, 1, theirs, 1);
      } else {
        if (receives_first) comm.recv(theirs, 0);
        comm.send(mine, 0);
        if (!receives_first) comm.recv(theirs, 0);
      }
      EXPECT_EQ(theirs, data_of(1 - comm.rank()));
    });
  }
  run_ranks(3, {.timeout = std::chrono::seconds(60)}, [&](Communicator& comm) {
    const std::vector<int> mine = data_of(comm.rank());
    std::vector<int> theirs(kCount);
    if (comm.rank() == 0) comm.sendrecv(mine, 1, theirs, 2);
    if (comm.rank() == 1) comm.sendrecv(mine, 2, theirs, 0);
    if (comm.rank() == 2) {
      comm.recv(theirs, 1);
      comm.send(mine, 0);
    }
    EXPECT_EQ(theirs, data_of((comm.rank() + 2) % 3));
  });
}

// A rank that has sent and left: its message still arrives.
TEST(Message, ArrivesAfterItsSenderHasLeft) {
  run_ranks(2, {}, [](Communicator& comm) {
    std::vector<int> data(1000);
    if (comm.rank() == 1) {
      std::iota(data.begin(), data.end(), 5);
      comm.send(data, 0);
      const Communicator gone = std::move(comm);
      return;
    }
    std::vector<int> expected(1000);
    std::iota(expected.begin(), expected.end(), 5);
    comm.recv(data, 1);
    EXPECT_EQ(data, expected);
  });
}

TEST(Message, BadArgumentsAreUsageErrors) {
  run_ranks(2, {}, [](Communicator& comm) {
    std::vector<float> data(12);
    std::vector<float> other(12);
    const auto expect = [](const std::string& text, auto&& call) {
      const std::string error = usage_error(call);
      EXPECT_NE(error.find(text), std::string::npos) << error;
    };
    expect("receiver 2 is not a rank; ranks are 0 to 1", [&] { comm.send(data, 2); });
    expect("sender -1 is not a rank", [&] { comm.recv(data, -1); });
    expect("exchanges messages with itself only in a sendrecv",
           [&] { comm.send(data, comm.rank()); });
    expect("exchanges messages with itself only in a sendrecv",
           [&] { comm.sendrecv(data, comm.rank(), other, 1 - comm.rank()); });
    expect("sends 12 elements to itself, and receives 6",
           [&] { comm.sendrecv(data, comm.rank(), std::span(other).first(6), comm.rank()); });
    expect("overlap; pass separate ones",
           [&] { comm.sendrecv(data, 1 - comm.rank(), data, 1 - comm.rank()); });
    expect("overlap; pass separate ones", [&] { comm.all_to_all(data, data); });
    expect("`out` has 11 elements, it must have 12",
           [&] { comm.all_to_all(data, std::span(other).first(11)); });
    expect("11 elements cannot be cut into 2 equal parts",
           [&] { comm.all_to_all(std::span(data).first(11), std::span(other).first(11)); });
    expect("`counts` has 3 elements, it must have 2",
           [&] { comm.all_gather_v(data, std::vector<std::size_t>{4, 4, 4}); });
    expect("`buffer` has 12 elements, it must have 11",
           [&] { comm.reduce_scatter_v(data, std::vector<std::size_t>{4, 7}, ReduceOp::sum); });
    expect("only pairwise carries this call",
           [&] { comm.send(data, 1 - comm.rank(), {.algorithm = Algorithm::ring}); });
    expect("pairwise carries messages, gather, scatter and all_to_all only",
           [&] { comm.all_reduce(data, ReduceOp::sum, {.algorithm = Algorithm::pairwise}); });
    constexpr std::size_t kHalf = std::size_t{1} << 63U;
    const std::vector<std::size_t> wrapping = {kHalf, kHalf};
    expect("`buffer` has 12 elements, it must have", [&] { comm.all_gather_v(data, wrapping); });
    const std::vector<std::size_t> counts = {5, 6};
    expect("`counts` is for collectives in which each rank has a chunk of its own",
           [&] { comm.run({.collective = Collective::barrier, .counts = counts.data()}); });
    expect("exceed the address space", [&] {
      comm.run({.collective = Collective::sendrecv,
                .to = 1 - comm.rank(),
                .from = 1 - comm.rank(),
                .received = std::size_t{1} << 62U});
    });
    expect("the counts add up to 11, but the call has 12 elements", [&] {
      comm.run({.collective = Collective::all_gather,
                .in = data.data(),
                .out = other.data(),
                .count = 12,
                .counts = counts.data()});
    });
    comm.barrier();
  });
}

// Ranks whose counts differ, although their sums do not.
TEST(ChunkCounts, OtherCountsAreAMismatch) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::naive, Algorithm::one_shot}) {
    const auto reduce = [&](const std::vector<std::size_t>& counts) {
      return [=](Communicator& comm) {
        std::vector<float> data(12);
        comm.reduce_scatter_v(data, counts, ReduceOp::sum, {.algorithm = algorithm});
      };
    };
    const auto gather = [&](const std::vector<std::size_t>& counts) {
      return [=](Communicator& comm) {
        std::vector<float> data(12);
        comm.all_gather_v(data, counts, {.algorithm = algorithm});
      };
    };
    const auto expect = [](const std::vector<std::string>& errors, const std::string& text) {
      for (const std::string& error : errors) {
        EXPECT_NE(error.find(text), std::string::npos) << error;
      }
    };
    expect(errors_of(reduce({4, 8}), reduce({8, 4})),
           "reduce_scatter(12 x f32, sum, counts with checksum");
    expect(errors_of(gather({4, 8}), gather({8, 4})), "all_gather(12 x f32, counts with checksum");
    for (const std::string& error : errors_of(reduce({6, 6}), reduce({6, 6}))) EXPECT_EQ(error, "");
  }
}

TEST(ChunkCounts, InRankOrder) {
  run_ranks(3, {.rank_order = true}, [](Communicator& comm) {
    for (const std::size_t each : {10U, 1000U, 100'000U}) {
      ExchangeCheck<float>(comm, each, false).with_counts();
    }
    // By chain, whose first rank has nothing here.
    const std::vector<std::size_t> counts = {0, 40'000, 7};
    std::vector<Float16> in(40'007);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = Float16(static_cast<float>(i % 100));
    std::vector<Float16> out(counts[static_cast<std::size_t>(comm.rank())]);
    comm.reduce_scatter_v(in, out, counts, ReduceOp::sum, {.algorithm = Algorithm::chain});
    const std::size_t offset = comm.rank() == 2 ? 40'000 : 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(static_cast<float>(out[i]), static_cast<float>((offset + i) % 100 * 3));
    }
  });
}

TEST(AllToAllV, CountsThatDoNotFitAreAMismatchOrRefused) {
  const auto with = [](const std::vector<std::size_t>& counts,
                       const std::vector<std::size_t>& received) {
    return [=](Communicator& comm) {
      const std::vector<float> in(counts[0] + counts[1]);
      std::vector<float> out(received[0] + received[1]);
      comm.all_to_all_v(in, counts, out, received);
    };
  };
  const std::vector<std::string> errors = errors_of(with({1, 2}, {1, 5}), with({4, 1}, {2, 1}));
  EXPECT_NE(errors[0].find("rank 0 expects call 0 all_to_all(f32 with counts of each rank) by "
                           "pairwise to bring another number of elements from rank 1"),
            std::string::npos)
      << errors[0];
  EXPECT_FALSE(errors[1].empty());
  run_ranks(2, {}, [&](Communicator& comm) {
    const std::string text = usage_error([&] {
      const std::vector<float> in(3);
      std::vector<float> out(3);
      const std::vector<std::size_t> counts = {1, 2};
      comm.all_to_all_v(in, counts, out, std::vector<std::size_t>{2, 1});
    });
    EXPECT_NE(text.find("sends"), std::string::npos) << text;
  });
}

}  // namespace
}  // namespace rondo::test

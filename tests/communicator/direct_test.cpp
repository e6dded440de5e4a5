// Calls in which ranks reach each other's buffers.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/collective_checks.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/ranks.hpp"

namespace rondo::test {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{4} << 20U;

Communicator join(const ForkedRank& me, const CommunicatorOptions& options = {}) {
  return from_socket(me.socket, me.rank, me.size, options);
}

std::vector<int> zeros(int ranks) { return std::vector<int>(static_cast<std::size_t>(ranks), 0); }

// A table that names direct for all sizes.
class DirectFromTheFirstByte {
 public:
  DirectFromTheFirstByte() : file_(::testing::TempDir() + "rondo_direct_tuning") {
    std::ofstream(file_) << "buffers 1 0 direct\nshm 1 0 ring\nshm 3 0 one_shot\nshm 3 8000 ring\n";
    ::setenv("RONDO_TUNING", file_.c_str(), 1);
  }
  DirectFromTheFirstByte(const DirectFromTheFirstByte&) = delete;
  DirectFromTheFirstByte& operator=(const DirectFromTheFirstByte&) = delete;
  ~DirectFromTheFirstByte() { ::unsetenv("RONDO_TUNING"); }

 private:
  std::string file_;
};

class Registered : public testing::TestWithParam<int> {};

TEST_P(Registered, EveryTypeReductionAndCollectiveOfProcesses) {
  const std::vector<int> codes = run_forked(GetParam(), [](const ForkedRank& me) {
    Communicator comm = join(me);
    RegisteredMemory<std::uint8_t> memory = comm.allocate<std::uint8_t>(kMemoryBytes);
    const auto n = static_cast<std::size_t>(comm.size());
    for_each_type_and_op([&]<class T>(ReduceOp op) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n - 1, n, n + 1}) {
        CollectiveCheck<T>(comm, count, op, Algorithm::direct, CheckMemory(memory.span())).all();
      }
      CollectiveCheck<T>(comm, 2311, op, Algorithm::direct, CheckMemory(memory.span())).all();
    });
    CollectiveCheck<float>(comm, 123457, ReduceOp::sum, Algorithm::direct,
                           CheckMemory(memory.span()))
        .all();
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(codes, zeros(GetParam()));
}

// In each call, each rank takes registered or ordinary buffers as a number that all know says; so
// ranks decide on another way than direct in most calls, also while others have gone on already.
TEST_P(Registered, AnyMixOfBuffersGivesOneDecision) {
  const DirectFromTheFirstByte table;
  const std::vector<int> codes = run_forked(GetParam(), [](const ForkedRank& me) {
    Communicator comm = join(me);
    RegisteredMemory<std::uint64_t> memory = comm.allocate<std::uint64_t>(4000);
    std::vector<std::uint64_t> ordinary(4000);
    const auto n = static_cast<std::uint64_t>(comm.size());
    for (std::uint64_t call = 0; call < 6000; ++call) {
      const std::uint64_t dice = exact::mix(call);
      const bool registered =
          (exact::mix(call * 16 + static_cast<std::uint64_t>(me.rank)) & 3U) != 0;
      const std::size_t count = dice % 7 == 0 ? 4000 : dice % 50;
      const std::span<std::uint64_t> data =
          (registered ? memory.span() : std::span(ordinary)).first(count);
      for (std::size_t i = 0; i < count; ++i) {
        data[i] = call * 1000 + i + static_cast<std::uint64_t>(me.rank);
      }
      const int root = static_cast<int>(dice % n);
      const std::uint64_t sum = n * (n - 1) / 2;
      std::uint64_t wrong = 0;
      switch (dice / 7 % 3) {
        case 0:
          comm.all_reduce(data);
          for (std::size_t i = 0; i < count; ++i) wrong += data[i] != n * (call * 1000 + i) + sum;
          break;
        case 1:
          comm.broadcast(data, root);
          for (std::size_t i = 0; i < count; ++i) {
            wrong += data[i] != call * 1000 + i + static_cast<std::uint64_t>(root);
          }
          break;
        default:
          comm.reduce(data, root);
          for (std::size_t i = 0; i < count && me.rank == root; ++i) {
            wrong += data[i] != n * (call * 1000 + i) + sum;
          }
      }
      if (wrong != 0) return 1;
    }
    return 0;
  });
  EXPECT_EQ(codes, zeros(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Registered, testing::Values(1, 2, 3, 4));

TEST(Registered, AlgorithmsAreChosenByWhatIsReachable) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm = join(me);
    std::vector<float> ordinary(100'000);
    Call call{.collective = Collective::all_reduce,
              .in = ordinary.data(),
              .out = ordinary.data(),
              .count = ordinary.size()};
    if (comm.algorithm_for(call) != Algorithm::hierarchical) return 1;
    call.options.algorithm = Algorithm::direct;
    try {
      static_cast<void>(comm.algorithm_for(call));
      return 2;
    } catch (const UsageError&) {
    }
    call.options.algorithm.reset();
    RegisteredMemory<float> memory(ordinary.size());
    call.in = call.out = memory.data();
    return comm.algorithm_for(call) == Algorithm::direct ? 0 : 3;
  });
  EXPECT_EQ(codes, zeros(2));
  run_ranks(2, {}, [](Communicator& comm) {
    std::vector<float> any(100'000);
    EXPECT_EQ(comm.algorithm_for({.collective = Collective::all_reduce,
                                  .in = any.data(),
                                  .out = any.data(),
                                  .count = any.size()}),
              Algorithm::direct);
  });
}

// Named, direct is an order: all ranks are told, and go on.
TEST(Registered, ABufferThatCannotBeReachedIsAnErrorOfAllAndNothingIsLost) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = join(me);
    RegisteredMemory<float> memory = comm.allocate<float>(1000);
    std::vector<float> ordinary(1000, 1.0F);
    std::fill(memory.begin(), memory.end(), 1.0F);
    for (int odd = 0; odd < me.size; ++odd) {
      const std::span<float> data = me.rank == odd ? std::span(ordinary) : memory.span();
      try {
        comm.all_reduce(data, ReduceOp::sum, {.algorithm = Algorithm::direct});
        return 1;
      } catch (const UsageError& error) {
        const std::string text = error.what();
        if (text.find("rank " + std::to_string(odd) + " are not") == std::string::npos &&
            text.find("another rank") == std::string::npos) {
          return 2;
        }
      }
      if (data[0] != 1.0F) return 3;
      comm.barrier();
    }
    comm.all_reduce(memory, ReduceOp::sum, {.algorithm = Algorithm::direct});
    return memory[999] == 3.0F ? 0 : 4;
  });
  EXPECT_EQ(codes, zeros(3));
}

// To name `automatic` is not to name an algorithm.
TEST(Registered, AutomaticNamedByACallChoosesAsAlways) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm = join(me);
    RegisteredMemory<float> memory = comm.allocate<float>(10'000);
    std::vector<float> ordinary(10'000, 1.0F);
    const std::span<float> data = me.rank == 0 ? memory.span() : std::span(ordinary);
    std::fill(data.begin(), data.end(), 1.0F);
    CallOptions options;
    if (me.rank == 0) options.algorithm = Algorithm::automatic;
    comm.all_reduce(data, ReduceOp::sum, options);
    return data[9'999] == 2.0F ? 0 : 1;
  });
  EXPECT_EQ(codes, zeros(2));
}

TEST(Registered, AWishForDirectIsGrantedWhereItCanBe) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm = join(me, {.algorithm = Algorithm::direct});
    std::vector<float> ordinary(10, 1.0F);
    comm.all_reduce(ordinary);
    RegisteredMemory<float> memory = comm.allocate<float>(10);
    memory[3] = 5.0F;
    comm.all_reduce(memory);
    comm.all_reduce(ordinary);
    return ordinary[0] == 4.0F && memory[3] == 10.0F ? 0 : 1;
  });
  EXPECT_EQ(codes, zeros(2));
}

std::size_t shared_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "RssShmem:") continue;
    std::size_t kib = 0;
    status >> kib;
    return kib;
  }
  return 0;
}

TEST(RegisteredMemoryOwner, IsFreedInAnyOrderAndGivenBack) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = join(me);
    // 96 MiB each: of two that are freed, as much is kept as the third takes.
    std::optional<RegisteredMemory<float>> third = comm.allocate<float>(24U << 20U);
    std::optional<RegisteredMemory<float>> first = comm.allocate<float>(24U << 20U);
    std::optional<RegisteredMemory<float>> second = comm.allocate<float>(24U << 20U);
    const auto value = static_cast<float>(me.rank + 1);
    std::fill(first->begin(), first->end(), value);
    std::fill(second->begin(), second->end(), value);
    std::fill(third->begin(), third->end(), value);
    const std::size_t before = shared_kib();
    if (me.rank == 1) first.reset();
    if (me.rank == 2) second.reset();
    if (me.rank != 0) third.reset();
    if (me.rank != 0 && shared_kib() + std::size_t{30} * 1024 > before) return 1;
    // Each rank passes memory that another rank has freed its part of.
    RegisteredMemory<float>& mine = me.rank == 1 ? *second : *first;
    comm.all_reduce(mine, ReduceOp::sum, {.algorithm = Algorithm::direct});
    for (const float element : mine) {
      if (element != 6.0F) return 2;
    }
    return 0;
  });
  EXPECT_EQ(codes, zeros(3));
}

TEST(RegisteredMemoryOwner, ManyAreMadeAndFreed) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm = join(me);
    RegisteredMemory<float> kept = comm.allocate<float>(10);
    for (int i = 0; i < 200; ++i) {
      RegisteredMemory<float> memory = comm.allocate<float>(1U << 16U);
      memory[1000] = static_cast<float>(i);
      kept[0] = 1.0F;
      comm.all_reduce(memory, ReduceOp::sum, {.algorithm = Algorithm::direct});
      comm.all_reduce(kept, ReduceOp::sum, {.algorithm = Algorithm::direct});
      if (memory[1000] != 2.0F * static_cast<float>(i) || kept[0] != 2.0F) return 1;
    }
    return shared_kib() < std::size_t{32} * 1024 ? 0 : 2;
  });
  EXPECT_EQ(codes, zeros(2));
}

TEST(RegisteredMemoryOwner, OfNothingIsFreed) { free_elements(nullptr); }

// Ranks of one process may read the same elements.
TEST(Direct, OfOneProcessMayShareWhatItOnlyReads) {
  std::vector<int> shared(50'000);
  std::iota(shared.begin(), shared.end(), 1);
  const std::vector<int> copy = shared;
  run_ranks(3, {.algorithm = Algorithm::direct}, [&](Communicator& comm) {
    std::vector<int> sums(shared.size());
    comm.all_reduce(std::span<const int>(shared), sums);
    int wrong = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) wrong += sums[i] == 3 * copy[i] ? 0 : 1;
    EXPECT_EQ(wrong, 0);
  });
  EXPECT_EQ(shared, copy);
}

TEST(RegisteredMemoryOwner, MovesAndIsZeroedAndMayBeEmptyOrDifferOnRanks) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = join(me);
    RegisteredMemory<int> empty = comm.allocate<int>(0);
    RegisteredMemory<int> memory =
        comm.allocate<int>(static_cast<std::size_t>(me.rank) * 5000 + 10);
    if (empty.size() != 0 || memory.size() != static_cast<std::size_t>(me.rank) * 5000 + 10)
      return 1;
    for (const int element : memory) {
      if (element != 0) return 2;
    }
    RegisteredMemory<int> moved = std::move(memory);
    // NOLINTNEXTLINE(bugprone-use-after-move): what is left is empty
    if (memory.size() != 0 || memory.begin() != memory.end()) return 4;
    memory = comm.allocate<int>(20);
    moved[9] = 1;
    memory[9] = 2;
    comm.all_reduce(moved.span().first(10), ReduceOp::sum, {.algorithm = Algorithm::direct});
    comm.all_reduce(memory, ReduceOp::sum, {.algorithm = Algorithm::direct});
    if (moved[9] != 3 || memory[9] != 6) return 3;
    comm.abort("the test ends it");
    return 0;  // freed after that
  });
  EXPECT_EQ(codes, zeros(3));
}

TEST(RegisteredMemoryOwner, TooMuchIsAnErrorAndNothingIsLost) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm = join(me);
    try {
      static_cast<void>(comm.allocate<float>(std::size_t{1} << 40U));
      return 1;
    } catch (const TransportError& error) {
      if (std::string(error.what()).find("allocate") == std::string::npos) return 2;
    }
    try {
      static_cast<void>(comm.allocate<float>(SIZE_MAX / 2));
      return 3;
    } catch (const UsageError& error) {
      if (std::string(error.what()).find("allocate(") == std::string::npos) return 4;
    }
    RegisteredMemory<float> memory = comm.allocate<float>(10);
    memory[0] = 1.0F;
    comm.all_reduce(memory);
    return memory[0] == 2.0F ? 0 : 5;
  });
  EXPECT_EQ(codes, zeros(2));
}

TEST(RegisteredMemoryOwner, OutlivesItsCommunicator) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    std::optional<RegisteredMemory<int>> memory;
    {
      Communicator comm = join(me);
      memory = comm.allocate<int>(100);
      (*memory)[5] = me.rank + 1;
      comm.all_reduce(*memory, ReduceOp::sum, {.algorithm = Algorithm::direct});
    }
    return (*memory)[5] == 3 ? 0 : 1;
  });
  EXPECT_EQ(codes, zeros(2));
  std::optional<RegisteredMemory<int>> memory;
  run_ranks(1, {}, [&](Communicator& comm) { memory = comm.allocate<int>(100); });
  (*memory)[99] = 1;
}

TEST(Direct, AProcessThatIsKilledIsNamed) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    RegisteredMemory<float> memory = comm.allocate<float>(1U << 20U);
    try {
      for (int call = 0; call < 1000; ++call) {
        if (comm.rank() == 1 && call == 20) ::raise(SIGKILL);
        comm.all_reduce(memory);
      }
    } catch (const PeerError& error) {
      return std::string(error.what()).find("rank 1 (process") != std::string::npos ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 200, 0}));
}

TEST(Direct, ATimeoutSaysHowFarTheRankCame) {
  run_ranks(2, {.timeout = std::chrono::milliseconds(100)}, [](Communicator& comm) {
    if (comm.rank() == 1) return;
    std::vector<float> data(1000);
    try {
      comm.all_reduce(data, ReduceOp::sum, {.algorithm = Algorithm::direct});
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("1 of 2 ranks had shown their buffers"),
                std::string::npos)
          << error.what();
    }
  });
}

// The ranks have registered memory, and make a call on other memory, which goes another way.
TEST(Direct, ATimeoutOfACallThatWentAnotherWaySaysNothingOfBuffers) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    const RegisteredMemory<float> memory = comm.allocate<float>(10);
    std::vector<float> data(100'000);
    try {
      if (comm.rank() == 1) comm.recv(data, 0);  // which nobody sends
      comm.all_reduce(data, ReduceOp::sum, {.timeout = std::chrono::milliseconds(100)});
    } catch (const TimeoutError& error) {
      const std::string text = error.what();
      if (text.find("buffers") != std::string::npos) return 1;
      return text.find("slices received") != std::string::npos ? 0 : 2;
    } catch (const PeerError&) {
      return 0;
    }
    return 3;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// A mismatch is found before anyone's buffers are touched.
TEST(Direct, AMismatchTouchesNothing) {
  for (const int ranks : {2, 3, 4}) {
    for (int odd = 0; odd < ranks; ++odd) {
      run_ranks(ranks, {.timeout = std::chrono::seconds(60)}, [&](Communicator& comm) {
        std::vector<float> data(10'000, static_cast<float>(comm.rank() + 1));
        const std::size_t count = comm.rank() == odd ? data.size() - 1 : data.size();
        EXPECT_THROW(comm.all_reduce(std::span(data).first(count), ReduceOp::sum,
                                     {.algorithm = Algorithm::direct}),
                     Error);
        EXPECT_EQ(data, std::vector<float>(10'000, static_cast<float>(comm.rank() + 1)));
      });
    }
  }
}

// A rank whose call has failed may free its buffers: nobody writes to them any more. The ranks make
// calls until one of them ends the communicator at a time that is different in each round.
TEST(Direct, NobodyTouchesTheBuffersOfAFailedCall) {
  for (int round = 0; round < 300; ++round) {
    const int ranks = 2 + round % 3;
    const std::size_t count = std::size_t{500} + static_cast<std::size_t>(round) * 37;
    std::vector<std::vector<std::uint64_t>> buffers(static_cast<std::size_t>(ranks));
    for (auto& buffer : buffers) buffer.assign(count, 1);
    run_ranks(ranks, {}, [&](Communicator& comm) {
      auto& mine = buffers[static_cast<std::size_t>(comm.rank())];
      try {
        for (int call = 0;; ++call) {
          if (comm.rank() == round % ranks && call == round % 5) comm.abort("the test ends it");
          comm.all_reduce(mine, ReduceOp::max, {.algorithm = Algorithm::direct});
        }
      } catch (const Error&) {
        std::fill(mine.begin(), mine.end(), 77 + static_cast<std::uint64_t>(comm.rank()));
      }
    });
    for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
      ASSERT_EQ(buffers[rank], std::vector<std::uint64_t>(buffers[rank].size(), 77 + rank))
          << "round " << round;
    }
  }
}

}  // namespace
}  // namespace rondo::test

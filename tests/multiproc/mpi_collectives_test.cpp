// Communicators over MPI processes. RONDO_TEST_CARRIER=mpi or ucx forces that carrier onto one
// host.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

#include <rondo/mpi.hpp>

#include "tests/support/collective_checks.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/exchange_checks.hpp"
#include "tests/support/large_check.hpp"
#include "tests/support/mismatch_matrix.hpp"
#include "tests/support/rank_order_checks.hpp"
#include "tests/support/split_checks.hpp"
#include "tests/support/user_reduction_checks.hpp"

namespace rondo::test {
namespace {

CommunicatorOptions options() {
  CommunicatorOptions result;
  result.timeout = std::chrono::seconds(120);
  const char* carrier = std::getenv("RONDO_TEST_CARRIER");
  const std::string_view forced = carrier == nullptr ? "" : carrier;
  if (forced == "mpi") result.carrier = CarrierChoice::mpi;
  if (forced == "ucx") result.carrier = CarrierChoice::ucx;
  return result;
}

TEST(Mpi, EveryCollectiveTypeAndReduction) {
  CommunicatorOptions small = options();
  small.slot_bytes = 512;
  small.slots = 4;
  Communicator comm = from_mpi(MPI_COMM_WORLD, small);
  const auto n = static_cast<std::size_t>(comm.size());
  for_each_type_and_op([&]<class T>(ReduceOp op) {
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::naive}) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n + 1, std::size_t{2311}}) {
        CollectiveCheck<T>(comm, count, op, algorithm).all();
      }
    }
  });
}

TEST(Mpi, LargeOddCountsWithDefaultSlots) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::naive}) {
    CollectiveCheck<float>(comm, 1234567, ReduceOp::avg, algorithm).all_reduce();
    CollectiveCheck<BFloat16>(comm, 654321, ReduceOp::sum, algorithm).all_reduce();
    CollectiveCheck<std::int64_t>(comm, 345677, ReduceOp::max, algorithm).reduce_scatter();
    CollectiveCheck<double>(comm, 345677, ReduceOp::prod, algorithm).all_gather();
    CollectiveCheck<float>(comm, 1234567, ReduceOp::sum, algorithm).broadcast(comm.size() - 1);
    CollectiveCheck<float>(comm, 1234567, ReduceOp::sum, algorithm).reduce(comm.size() - 1);
  }
}

TEST(Mpi, Exchanges) {
  CommunicatorOptions small = options();
  small.slot_bytes = 512;
  small.slots = 4;
  Communicator comm = from_mpi(MPI_COMM_WORLD, small);
  for (const bool asynchronous : {false, true}) {
    check_exchanges<std::uint8_t>(comm, asynchronous);
    check_exchanges<double>(comm, asynchronous);
  }
  Communicator usual = from_mpi(MPI_COMM_WORLD, options());
  ExchangeCheck<std::int32_t>(usual, 345'677, false).all();
}

TEST(Mpi, AMessageOfAnotherSizeIsAMismatch) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  if (comm.size() < 2) return;
  std::string error;
  try {
    const std::vector<float> sent(100);
    std::vector<float> received(99);
    if (comm.rank() == 0) comm.send(sent, 1);
    if (comm.rank() == 1) comm.recv(received, 0);
    comm.barrier();
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  EXPECT_NE(error.find("rank 1 expects message 0 from rank 0 (99 x f32), but rank 0 sent message 0 "
                       "from rank 0 (100 x f32)"),
            std::string::npos)
      << error;
}

bool leaves_memory(const Communicator& comm) {
  const std::vector<Edge>& edges = comm.topology().edges;
  return std::any_of(edges.begin(), edges.end(),
                     [](const Edge& edge) { return edge.carrier != Carrier::shm; });
}

// Whether the communicator has room for the call.
bool fits(const Communicator& comm, Call call) {
  static double any = 0;
  call.in = call.out = &any;
  try {
    return comm.algorithm_for(call) == call.options.algorithm;
  } catch (const UsageError&) {
    return false;
  }
}

TEST(Mpi, HalvingAndDoubling) {
  for (const std::size_t slot_bytes : {0U, 512U}) {
    CommunicatorOptions with = options();
    with.slot_bytes = slot_bytes;
    Communicator comm = from_mpi(MPI_COMM_WORLD, with);
    if (!leaves_memory(comm)) return;  // its edges are made between hosts only
    for_each_type_and_op([&]<class T>(ReduceOp op) {
      for (const std::size_t count : {0U, 1U, 15U, 17U, 100U, 1000U, 20001U}) {
        CollectiveCheck<T>(comm, count, op, Algorithm::halving_doubling).all_reduce();
      }
    });
    CollectiveCheck<float>(comm, 1'234'567, ReduceOp::avg, Algorithm::halving_doubling)
        .all_reduce();
  }
}

TEST(Mpi, Tree) {
  for (const std::size_t slot_bytes : {0U, 512U}) {
    CommunicatorOptions with = options();
    with.slot_bytes = slot_bytes;
    Communicator comm = from_mpi(MPI_COMM_WORLD, with);
    for_each_type_and_op([&]<class T>(ReduceOp op) {
      for (const std::size_t count : {0U, 1U, 17U, 1000U}) {
        CollectiveCheck<T>(comm, count, op, Algorithm::tree).all_but_all_reduce();
      }
    });
    CollectiveCheck<float>(comm, 123'457, ReduceOp::avg, Algorithm::tree).all_but_all_reduce();
  }
}

// In the order of ranks where they do not commute, whatever the order of the ring.
TEST(Mpi, UserReductions) {
  for (const std::size_t slot_bytes : {0U, 512U}) {
    CommunicatorOptions with = options();
    with.slot_bytes = slot_bytes;
    Communicator comm = from_mpi(MPI_COMM_WORLD, with);
    check_user_reductions(comm);
    check_large_elements(comm);
  }
}

TEST(Mpi, RareTypes) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  for_each_rare_type_and_op(
      [&]<class T>(ReduceOp op) { CollectiveCheck<T>(comm, 777, op, Algorithm::automatic).all(); });
}

// Through the memory of each host, and between hosts along rails; tests/hosts runs it where hosts
// hold several ranks.
TEST(Mpi, Hierarchical) {
  for (const std::size_t slot_bytes : {0U, 512U}) {
    CommunicatorOptions with = options();
    with.slot_bytes = slot_bytes;
    Communicator comm = from_mpi(MPI_COMM_WORLD, with);
    const Call any{.collective = Collective::all_reduce,
                   .options = {.algorithm = Algorithm::hierarchical}};
    if (!fits(comm, any)) return;  // no host has two ranks that share memory
    for_each_type_and_op([&]<class T>(ReduceOp op) {
      for (const std::size_t count : {0U, 1U, 15U, 17U, 100U, 1000U, 20'001U}) {
        CollectiveCheck<T>(comm, count, op, Algorithm::hierarchical).all_reduce();
      }
    });
    CollectiveCheck<float>(comm, 1'234'567, ReduceOp::avg, Algorithm::hierarchical).all_reduce();
    for (int call = 0; call < 300; ++call) {
      const std::vector<int> mine(static_cast<std::size_t>(call * 7), comm.rank() + call);
      std::vector<int> sum(mine.size());
      comm.all_reduce(mine, sum, ReduceOp::sum, {.algorithm = Algorithm::hierarchical});
      const int n = comm.size();
      ASSERT_EQ(sum, std::vector<int>(mine.size(), n * call + n * (n - 1) / 2));
    }
  }
}

// In registered memory, whose owners read and write it themselves inside a host; sometimes one
// rank's buffers cannot be reached, or not all of one of them.
TEST(Mpi, HierarchicalInRegisteredMemory) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  const Call any{.collective = Collective::all_reduce,
                 .options = {.algorithm = Algorithm::hierarchical}};
  if (!fits(comm, any)) return;
  constexpr std::size_t kMost = 300'000;
  RegisteredMemory<int> registered = comm.allocate<int>(2 * kMost);
  std::vector<int> ordinary(2 * kMost);
  int calls = 0;
  for (const std::size_t count : {0U, 1U, 17U, 1000U, 20'001U, 300'000U}) {
    for (const bool in_place : {false, true}) {
      for (int outsider = -1; outsider < comm.size(); ++outsider) {
        const bool reachable = comm.rank() != outsider;
        int* in = reachable ? registered.data() : ordinary.data();
        int* out = in_place ? in : in + kMost;
        if (reachable && calls % 3 == 2) out = in_place ? in : ordinary.data();
        for (std::size_t i = 0; i < count; ++i) {
          in[i] = exact::input<int>(ReduceOp::sum, comm.rank(), comm.size(), i);
        }
        comm.all_reduce(std::span<const int>(in, count), std::span<int>(out, count), ReduceOp::sum,
                        {.algorithm = Algorithm::hierarchical});
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(out[i], exact::result<int>(ReduceOp::sum, comm.size(), i))
              << i << " of " << count << ", call " << calls;
        }
        ++calls;
      }
    }
  }
}

TEST(Mpi, SplitByColorInTheOrderOfKeys) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  expect_groups_by_color(comm);
}

// The bits are those of one host, whatever carries the edges.
TEST(Mpi, RankOrderWhereItIsPromised) {
  CommunicatorOptions in_order = options();
  in_order.rank_order = true;
  Communicator comm = from_mpi(MPI_COMM_WORLD, in_order);
  for_each_rounded([&]<class T>(ReduceOp op) {
    for (const std::size_t count : {0U, 1U, 1000U, 50'003U}) {
      expect_rank_order<T>(comm, count, op, {});
    }
  });
}

TEST(Mpi, RecursiveDoubling) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  if (!leaves_memory(comm)) {
    std::vector<float> data(1);
    const CallOptions doubling{.algorithm = Algorithm::recursive_doubling};
    if (comm.size() > 1) {
      EXPECT_THROW(comm.all_reduce(data, ReduceOp::sum, doubling), UsageError);
    }
    comm.barrier();
    return;
  }
  for_each_type_and_op([&]<class T>(ReduceOp op) {
    for (const std::size_t count : {0U, 1U, 100U, 20001U}) {
      CollectiveCheck<T>(comm, count, op, Algorithm::recursive_doubling).all_reduce();
    }
  });
  // The sign of a zero shows whether all combine in the same order.
  std::vector<float> zeros(1, comm.rank() % 2 == 0 ? 0.0F : -0.0F);
  comm.all_reduce(zeros, ReduceOp::min, {.algorithm = Algorithm::recursive_doubling});
  std::vector<std::int32_t> negative(1, std::signbit(zeros[0]) ? 1 : 0);
  std::vector<std::int32_t> least = negative;
  comm.all_reduce(negative, ReduceOp::max);
  comm.all_reduce(least, ReduceOp::min);
  EXPECT_EQ(negative, least);
}

// Ring and recursive doubling use different edges: a message of one may arrive on an edge that the
// other does not read.
TEST(Mpi, CallsByDifferentAlgorithmsAreAMismatch) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  if (!leaves_memory(comm) || comm.size() < 2) return;
  std::vector<float> data(10);
  try {
    comm.all_reduce(
        data, ReduceOp::sum,
        {.algorithm = comm.rank() == 0 ? Algorithm::ring : Algorithm::recursive_doubling});
    ADD_FAILURE() << "rank " << comm.rank() << " noticed nothing";
  } catch (const MismatchError& error) {
    EXPECT_NE(std::string(error.what()).find("by recursive_doubling"), std::string::npos)
        << error.what();
  } catch (const PeerError& error) {
    EXPECT_NE(std::string(error.what()).find("by recursive_doubling"), std::string::npos)
        << error.what();
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// A waiting rank tells the root which call it is in. If the root destroys its communicator at once,
// this message may still be under way; it must not reach the next communicator.
TEST(Mpi, WhatAWaitingRankSaysDoesNotOutliveItsCommunicator) {
  CommunicatorOptions with = options();
  if (with.carrier == CarrierChoice::automatic) return;
  for (int round = 0; round < 60; ++round) {
    Communicator comm = from_mpi(MPI_COMM_WORLD, with);
    if (comm.size() == 1) return;
    // Rank 0 is late by about the time after which waiting ranks send that message.
    const auto late = std::chrono::steady_clock::now() + std::chrono::milliseconds(34 + round % 11);
    while (comm.rank() == 0 && std::chrono::steady_clock::now() < late) std::this_thread::yield();
    std::vector<int> data(100, comm.rank() == 0 ? round : -1);
    // With naive, all other ranks wait for rank 0 itself, so all of them send it that message.
    comm.broadcast(data, 0, {.algorithm = round % 2 == 0 ? Algorithm::ring : Algorithm::naive});
    ASSERT_EQ(data, std::vector<int>(100, round));
  }
}

// A rank that waits long sends its call to the rank that it waits for, which may itself wait long
// in the same call. The sleep makes ranks late, as slow ranks are; the expected results do not
// depend on its length.
TEST(Mpi, RanksThatComeOneAfterTheOtherAreNoMismatch) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::naive}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300 * comm.rank()));
    CollectiveCheck<float>(comm, 1000, ReduceOp::sum, algorithm).all_reduce();
    comm.barrier();
  }
}

// Calls of 80 KB fit the slots of an edge, so that a rank that only sends waits for no free slot.
TEST(Mpi, EveryMismatchIsAnErrorOnEveryRank) {
  CommunicatorOptions with = options();
  with.slot_bytes = 8192;
  with.slots = 16;
  with.timeout = std::chrono::seconds(60);
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // tests/communicator/mismatch_test.cpp tests groups that use shared memory only.
  if (size > 4 || !leaves_memory(from_mpi(MPI_COMM_WORLD, with))) return;
  std::vector<Algorithm> algorithms = {Algorithm::ring, Algorithm::naive,
                                       Algorithm::recursive_doubling, Algorithm::halving_doubling,
                                       Algorithm::tree};
  const Call hierarchical{.collective = Collective::all_reduce,
                          .options = {.algorithm = Algorithm::hierarchical}};
  if (fits(from_mpi(MPI_COMM_WORLD, with), hierarchical)) {
    algorithms.push_back(Algorithm::hierarchical);
  }
  std::vector<Mismatch> mismatches = all_mismatches(100, algorithms);
  const std::vector<Mismatch> larger = all_mismatches(20'000, algorithms);
  mismatches.insert(mismatches.end(), larger.begin(), larger.end());
  const char* carrier = std::getenv("RONDO_TEST_CARRIER");
  const std::string way =
      std::to_string(size) + (carrier == nullptr ? "" : std::string(" ") + carrier);
  int number = 0;
  for (const Mismatch& mismatch : drawn(std::move(mismatches), way)) {
    Communicator comm = from_mpi(MPI_COMM_WORLD, with);
    EXPECT_EQ(complaint_about(comm, mismatch, number++ % size), "");
  }
}

TEST(Mpi, NoRankEndsTwoChainsWithoutARankThatIsLate) {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 3 || !leaves_memory(from_mpi(MPI_COMM_WORLD, options()))) return;
  for (const LateRank& late : every_late_rank(size)) {
    Communicator comm = from_mpi(MPI_COMM_WORLD, options());
    EXPECT_LE(chains_ended_without(comm, late), 1)
        << "rank " << comm.rank() << " of " << size << ", " << name(late.collective) << " by "
        << name(late.algorithm) << ", rank " << late.rank << " is late, roots " << late.stride
        << " apart";
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// A barrier, or an all_reduce without elements.
TEST(Mpi, NoRankLeavesWithoutARankThatIsLate) {
  for (const Collective collective : {Collective::barrier, Collective::all_reduce}) {
    for (int late = 0;; ++late) {
      Communicator comm = from_mpi(MPI_COMM_WORLD, options());
      if (late == comm.size() || comm.size() == 1) break;
      Call call{.collective = collective};
      call.options.timeout = std::chrono::milliseconds(50);
      if (comm.rank() != late) {
        EXPECT_THROW(comm.run(call), Error)
            << "rank " << comm.rank() << ", " << name(collective) << " without rank " << late;
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
}

// Rank 1 has ended its part of the broadcast, and learns in its destructor that rank 2 makes a
// different call.
TEST(Mpi, AMismatchThatComesDuringADestructorIsLogged) {
  std::string told;
  {
    Communicator comm = from_mpi(MPI_COMM_WORLD, options());
    const int rank = comm.rank();
    if (comm.size() != 3) return;
    set_log_hook([&](LogLevel, std::string_view text) { told += text; }, LogLevel::warning);
    std::vector<float> data(10);
    if (rank == 2) MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    try {
      comm.broadcast(data, rank == 2 ? 2 : 0, {.algorithm = Algorithm::ring});
      EXPECT_EQ(rank, 1);
    } catch (const Error&) {
      EXPECT_NE(rank, 1);
    }
    if (rank == 1) MPI_Send(nullptr, 0, MPI_BYTE, 2, 0, MPI_COMM_WORLD);
    if (rank != 1) MPI_Barrier(MPI_COMM_WORLD);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) MPI_Barrier(MPI_COMM_WORLD);
  set_log_hook({});
  EXPECT_NE(told.find("Make the same calls"), std::string::npos) << told;
}

// The calls also use different edges: those that `auto` takes for few bytes and for many, or those
// of ring and naive.
TEST(Mpi, CountsThatChooseDifferentAlgorithmsAreAMismatch) {
  for (const bool broadcasts : {false, true}) {
    Communicator comm = from_mpi(MPI_COMM_WORLD, options());
    if (comm.size() == 1) return;  // one rank cannot disagree with itself
    const bool odd = comm.rank() == comm.size() - 1;
    std::vector<float> data(odd ? 100000 : 100);
    try {
      if (broadcasts) {
        comm.broadcast(data, 0, {.algorithm = odd ? Algorithm::naive : Algorithm::ring});
        comm.barrier();
      } else {
        comm.all_reduce(data);
      }
      ADD_FAILURE() << "rank " << comm.rank() << " noticed nothing";
    } catch (const MismatchError& error) {
      EXPECT_NE(std::string(error.what()).find("100000 x f32"), std::string::npos) << error.what();
    } catch (const PeerError& error) {
      EXPECT_NE(std::string(error.what()).find("100000 x f32"), std::string::npos) << error.what();
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// Only with two ranks, for the memory it takes.
TEST(Mpi, CountsBeyondTwoToTheThirtyOne) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  constexpr std::uint64_t kNeededKib = 6U << 20U;
  std::vector<std::uint64_t> memory = {available_kib()};
  comm.all_reduce(memory, ReduceOp::min);
  if (comm.size() != 2 || std::getenv("RONDO_TEST_LARGE") == nullptr) {
    GTEST_SKIP() << "runs with two ranks and RONDO_TEST_LARGE set";
  }
  if (memory[0] < kNeededKib) {
    GTEST_SKIP() << "needs 6 GiB of memory, " << memory[0] / 1024 << " MiB are available";
  }
  check_beyond_int(comm);
}

TEST(Mpi, ManyCallsInARow) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  for (std::size_t call = 0; call < 300; ++call) {
    std::vector<std::uint32_t> data(1 + call * 7 % 50, static_cast<std::uint32_t>(call));
    const std::vector<std::uint32_t> expected(
        data.size(), static_cast<std::uint32_t>(call) * static_cast<std::uint32_t>(comm.size()));
    comm.all_reduce(data);
    ASSERT_EQ(data, expected);
  }
}

// Each call waits for the confirmation that all ranks have made the call before, unless that call
// itself needed all.
TEST(Mpi, ManyChainsInARow) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  const int size = comm.size();
  for (int call = 0; call < 400; ++call) {
    if (call % 13 == 0) comm.barrier();
    const Algorithm algorithm = call % 5 == 4 ? Algorithm::naive : Algorithm::ring;
    const int root = (call < 200 ? call : 400 - call) % size;
    std::vector<int> data(1 + static_cast<std::size_t>(call) * 7 % 50, comm.rank() + call);
    int expected = root + call;
    if (call % 3 == 0) {
      comm.reduce(data, root, ReduceOp::sum, {.algorithm = algorithm});
      if (comm.rank() != root) continue;
      expected = size * call + size * (size - 1) / 2;
    } else {
      comm.broadcast(data, root, {.algorithm = algorithm});
    }
    ASSERT_EQ(data, std::vector<int>(data.size(), expected)) << call;
  }
}

TEST(Mpi, AsynchronousCallsRunInOrder) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  std::vector<std::vector<int>> buffers(20, std::vector<int>(20000, comm.rank()));
  std::vector<Work> works;
  for (auto& buffer : buffers) works.push_back(comm.all_reduce_async(buffer));
  comm.barrier();
  const int sum = comm.size() * (comm.size() - 1) / 2;
  for (std::size_t i = 0; i < works.size(); ++i) {
    EXPECT_TRUE(works[i].done());
    works[i].wait();
    EXPECT_EQ(buffers[i], std::vector<int>(20000, sum));
  }
}

TEST(Mpi, CommunicatorsAreIndependentAndTheCallersIsNotUsed) {
  Communicator a = from_mpi(MPI_COMM_WORLD, options());
  Communicator b = from_mpi(MPI_COMM_WORLD, options());
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // A message of the caller's own, under way while Rondo works, with a tag that Rondo uses too.
  int received = -1;
  const int mine = rank;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&received, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &request);
  std::vector<int> x(1000, 1);
  std::vector<int> y(1000, 2);
  const Work work = a.all_reduce_async(x);
  b.all_reduce(y);
  work.wait();
  MPI_Send(&mine, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(received, (rank + size - 1) % size);
  EXPECT_EQ(x, std::vector<int>(1000, size));
  EXPECT_EQ(y, std::vector<int>(1000, 2 * size));
}

TEST(Mpi, APartOfTheWorldIsACommunicator) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);  // in reverse order
  {
    Communicator comm = from_mpi(half, options());
    CollectiveCheck<float>(comm, 1001, ReduceOp::sum, Algorithm::ring).all();
  }
  MPI_Comm_free(&half);
}

TEST(Mpi, AMismatchFailsOnEveryRank) {
  Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  if (comm.size() == 1) return;  // one rank cannot disagree with itself
  std::vector<float> data(static_cast<std::size_t>(10 + (comm.rank() == 0 ? 1 : 0)));
  try {
    comm.all_reduce(data);
    FAIL() << "rank " << comm.rank() << " noticed nothing";
  } catch (const MismatchError& error) {
    EXPECT_NE(std::string(error.what()).find("all_reduce(11 x f32, sum)"), std::string::npos)
        << error.what();
  } catch (const PeerError& error) {
    EXPECT_NE(std::string(error.what()).find("Make the same calls"), std::string::npos)
        << error.what();
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Messages of a failed communicator must not reach the next one, although no barrier separates the
// two.
TEST(Mpi, ANewCommunicatorWorksAfterAFailure) {
  for (int round = 0; round < 20; ++round) {
    {
      Communicator comm = from_mpi(MPI_COMM_WORLD, options());
      if (comm.size() == 1) return;  // one rank cannot disagree with itself
      std::vector<float> data(static_cast<std::size_t>(1000 + (comm.rank() == 0 ? 1 : 0)));
      EXPECT_THROW(comm.all_reduce(data), Error);
    }
    Communicator comm = from_mpi(MPI_COMM_WORLD, options());
    std::vector<int> data(10, 1);
    comm.all_reduce(data);
    ASSERT_EQ(data, std::vector<int>(10, comm.size())) << "round " << round;
  }
}

// Messages are under way when the communicator ends: MPI must not go on using memory that has been
// freed.
TEST(Mpi, AnAbortInMidCallLeavesNothingBehind) {
  for (int round = 0; round < 20; ++round) {
    Communicator comm = from_mpi(MPI_COMM_WORLD, options());
    if (comm.size() == 1) return;  // there is nobody to send to
    std::vector<float> data(1U << 20U, 1.0F);
    const Work work = comm.all_reduce_async(data);
    if (comm.rank() == 0) comm.abort("round is over");
    try {
      work.wait();
      comm.barrier();
    } catch (const PeerError&) {
      continue;
    }
  }
}

TEST(Mpi, OptionsThatDifferAreAnErrorOnEveryRank) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return;  // one rank cannot disagree with itself
  CommunicatorOptions different = options();
  different.slots = rank == 1 ? 4 : 8;
  EXPECT_THROW(from_mpi(MPI_COMM_WORLD, different), UsageError);
}

// Nobody waits for a rank whose own arguments are wrong.
TEST(Mpi, OptionsOutOfRangeOnOneRankAreAnErrorOnEveryRank) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CommunicatorOptions wrong = options();
  if (rank == size - 1) wrong.timeout = std::chrono::milliseconds(-1);
  try {
    const Communicator comm = from_mpi(MPI_COMM_WORLD, wrong);
    FAIL() << "rank " << rank << " noticed nothing";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("rank " + std::to_string(size - 1)), std::string::npos)
        << error.what();
  }
}

TEST(Mpi, WrongCommunicatorsAreErrors) { EXPECT_THROW(from_mpi(MPI_COMM_NULL), UsageError); }

TEST(Mpi, TheTopologySaysHowEachEdgeIsCarried) {
  const Communicator comm = from_mpi(MPI_COMM_WORLD, options());
  const Topology& topology = comm.topology();
  ASSERT_EQ(topology.places.size(), static_cast<std::size_t>(comm.size()));
  EXPECT_EQ(topology.ring.front(), 0);
  for (const Edge& edge : topology.edges) {
    const bool same_host = on_one_host(topology.places[static_cast<std::size_t>(edge.from)],
                                       topology.places[static_cast<std::size_t>(edge.to)]);
    const CarrierChoice choice = options().carrier;
    const bool in_memory = same_host && choice == CarrierChoice::automatic;
    const Carrier network = choice == CarrierChoice::ucx ? Carrier::ucx : Carrier::mpi;
    EXPECT_EQ(edge.carrier, in_memory ? Carrier::shm : network) << edge.reason;
    EXPECT_FALSE(edge.reason.empty());
  }
}

}  // namespace
}  // namespace rondo::test

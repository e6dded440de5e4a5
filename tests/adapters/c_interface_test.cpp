// The C interface, from C++: what it gives, and what it refuses. in_c.c is a program in C.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.h>
#include <rondo/version.hpp>

namespace rondo::test {
namespace {

using Ints = std::vector<std::int32_t>;

// Runs `body` on `size` ranks, which are threads.
void on_ranks(int size, const std::function<void(rondo_comm*)>& body,
              const rondo_options* options = nullptr) {
  std::vector<rondo_comm*> comms(static_cast<std::size_t>(size));
  ASSERT_EQ(rondo_local_group(size, options, comms.data()), RONDO_OK) << rondo_last_error();
  std::vector<std::thread> threads;
  for (rondo_comm* comm : comms) {
    threads.emplace_back([&body, comm] {
      body(comm);
      rondo_comm_destroy(comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Element i of rank r.
std::int32_t value(int rank, std::size_t i) {
  return 1000 * (rank + 1) + static_cast<std::int32_t>(i);
}

Ints values_of(int rank, std::size_t count, std::size_t first = 0) {
  Ints values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value(rank, first + i);
  return values;
}

std::int32_t sum(int size, std::size_t i) {
  std::int32_t result = 0;
  for (int rank = 0; rank < size; ++rank) result += value(rank, i);
  return result;
}

constexpr std::size_t kCount = 12;
constexpr int kSize = 3;
constexpr std::size_t kPart = kCount / kSize;

#define EXPECT_OK(call) EXPECT_EQ(call, RONDO_OK) << rondo_last_error()

TEST(CInterface, Reduces) {
  on_ranks(kSize, [](rondo_comm* comm) {
    const int rank = rondo_rank(comm);
    ASSERT_EQ(rondo_size(comm), kSize);
    const Ints in = values_of(rank, kCount);
    Ints sums(kCount);
    for (std::size_t i = 0; i < kCount; ++i) sums[i] = sum(kSize, i);
    Ints out(kCount);
    EXPECT_OK(rondo_all_reduce(comm, in.data(), out.data(), kCount, RONDO_I32, RONDO_SUM, nullptr));
    EXPECT_EQ(out, sums);
    EXPECT_OK(rondo_all_reduce(comm, in.data(), out.data(), kCount, RONDO_I32, RONDO_MAX, nullptr));
    EXPECT_EQ(out, values_of(kSize - 1, kCount));

    std::size_t offset = 0;
    std::size_t count = 0;
    rondo_chunk(kCount, kSize, static_cast<std::size_t>(rank), &offset, &count);
    EXPECT_EQ(offset, kPart * static_cast<std::size_t>(rank));
    EXPECT_EQ(count, kPart);
    Ints chunk(count);
    EXPECT_OK(
        rondo_reduce_scatter(comm, in.data(), chunk.data(), kCount, RONDO_I32, RONDO_SUM, nullptr));
    EXPECT_EQ(chunk, Ints(sums.begin() + static_cast<std::ptrdiff_t>(offset),
                          sums.begin() + static_cast<std::ptrdiff_t>(offset + count)));
    constexpr std::array<std::size_t, kSize> kCounts = {2, 0, 10};
    Ints uneven(kCounts[static_cast<std::size_t>(rank)]);
    EXPECT_OK(rondo_reduce_scatter_v(comm, in.data(), uneven.data(), kCounts.data(), RONDO_I32,
                                     RONDO_SUM, nullptr));
    if (rank == 2) {
      EXPECT_EQ(uneven, Ints(sums.begin() + 2, sums.end()));
    }
    if (rank == 0) {
      EXPECT_EQ(uneven, Ints(sums.begin(), sums.begin() + 2));
    }

    out.assign(kCount, 0);
    EXPECT_OK(rondo_reduce(comm, in.data(), out.data(), kCount, RONDO_I32, RONDO_SUM, 1, nullptr));
    if (rank == 1) {
      EXPECT_EQ(out, sums);
    }
  });
}

TEST(CInterface, Moves) {
  on_ranks(kSize, [](rondo_comm* comm) {
    const int rank = rondo_rank(comm);
    const auto place = static_cast<std::size_t>(rank);
    Ints all;  // what all ranks give, one after the other
    for (int one = 0; one < kSize; ++one) {
      const Ints part = values_of(one, kPart);
      all.insert(all.end(), part.begin(), part.end());
    }
    const Ints part = values_of(rank, kPart);
    Ints out(kCount);
    EXPECT_OK(rondo_all_gather(comm, part.data(), out.data(), kCount, RONDO_I32, nullptr));
    EXPECT_EQ(out, all);
    constexpr std::array<std::size_t, kSize> kCounts = {5, 1, 6};
    const Ints uneven = values_of(rank, kCounts[place], 50);
    out.assign(kCount, 0);
    EXPECT_OK(
        rondo_all_gather_v(comm, uneven.data(), out.data(), kCounts.data(), RONDO_I32, nullptr));
    EXPECT_EQ(out[4], value(0, 54));
    EXPECT_EQ(out[5], value(1, 50));
    EXPECT_EQ(out[11], value(2, 55));

    Ints same = values_of(rank, kCount);
    EXPECT_OK(rondo_broadcast(comm, same.data(), same.data(), kCount, RONDO_I32, 2, nullptr));
    EXPECT_EQ(same, values_of(2, kCount));
    out.assign(kCount, 0);
    EXPECT_OK(rondo_gather(comm, part.data(), rank == 1 ? out.data() : nullptr, kCount, RONDO_I32,
                           1, nullptr));
    if (rank == 1) {
      EXPECT_EQ(out, all);
    }
    Ints mine(kPart);
    EXPECT_OK(rondo_scatter(comm, rank == 0 ? all.data() : nullptr, mine.data(), kCount, RONDO_I32,
                            0, nullptr));
    EXPECT_EQ(mine, part);
    const Ints in = values_of(rank, kCount);
    EXPECT_OK(rondo_all_to_all(comm, in.data(), out.data(), kCount, RONDO_I32, nullptr));
    for (int from = 0; from < kSize; ++from) {
      const std::size_t first = kPart * static_cast<std::size_t>(from);
      EXPECT_EQ(out[first + 1], value(from, kPart * place + 1));
    }

    if (rank == 0) {
      EXPECT_OK(rondo_send(comm, in.data(), 7, RONDO_I32, 2, nullptr));
    }
    if (rank == 2) {
      EXPECT_OK(rondo_recv(comm, out.data(), 7, RONDO_I32, 0, nullptr));
      EXPECT_EQ(out[6], value(0, 6));
    }
    const int next = (rank + 1) % kSize;
    const int previous = (rank + kSize - 1) % kSize;
    EXPECT_OK(rondo_sendrecv(comm, in.data(), static_cast<std::size_t>(rank) + 1, next, out.data(),
                             static_cast<std::size_t>(previous) + 1, previous, RONDO_I32, nullptr));
    EXPECT_EQ(out[static_cast<std::size_t>(previous)],
              value(previous, static_cast<std::size_t>(previous)));
    EXPECT_OK(rondo_barrier(comm, nullptr));
  });
}

TEST(CInterface, StartsCalls) {
  on_ranks(2, [](rondo_comm* comm) {
    Ints first = values_of(rondo_rank(comm), 1000);
    Ints second = first;
    rondo_call call = RONDO_CALL(RONDO_ALL_REDUCE);
    call.in = call.out = first.data();
    call.count = first.size();
    call.type = RONDO_I32;
    rondo_work* one = nullptr;
    rondo_work* other = nullptr;
    EXPECT_OK(rondo_start(comm, &call, &one));
    call.in = call.out = second.data();
    call.op = RONDO_MIN;
    EXPECT_OK(rondo_start(comm, &call, &other));
    EXPECT_OK(rondo_wait(other));
    EXPECT_EQ(rondo_done(other), 1);
    EXPECT_OK(rondo_wait(one));
    EXPECT_OK(rondo_wait(one));
    rondo_work_destroy(one);
    rondo_work_destroy(other);
    EXPECT_EQ(first[999], sum(2, 999));
    EXPECT_EQ(second, values_of(0, 1000));
    EXPECT_OK(rondo_run(comm, &call));
    rondo_algorithm algorithm = RONDO_DEFAULT;
    EXPECT_OK(rondo_algorithm_for(comm, &call, &algorithm));
    EXPECT_GT(algorithm, RONDO_AUTOMATIC);
    const rondo_call_options options = {sizeof(rondo_call_options), 30, RONDO_RING, 1};
    call.options = &options;
    EXPECT_OK(rondo_algorithm_for(comm, &call, &algorithm));
    EXPECT_EQ(algorithm, RONDO_RING);
  });
}

// b becomes a after b, where a pair (f, s) is the function x -> f x + s: it does not commute.
void after(void* user, const void* in, void* in_out, std::size_t count) {
  ++*static_cast<std::atomic<int>*>(user);
  const auto* a = static_cast<const std::int32_t*>(in);
  auto* b = static_cast<std::int32_t*>(in_out);
  for (std::size_t i = 0; i < 2 * count; i += 2) {
    b[i + 1] = a[i] * b[i + 1] + a[i + 1];
    b[i] = a[i] * b[i];
  }
}

TEST(CInterface, ReducesByFunctionsOfTheProgram) {
  on_ranks(kSize, [](rondo_comm* comm) {
    const int rank = rondo_rank(comm);
    std::atomic<int> calls = 0;
    rondo_reduction reduction = RONDO_REDUCTION(after, 2 * sizeof(std::int32_t));
    reduction.user = &calls;
    reduction.commutative = 0;
    // (2, 1) after (3, 2) after (4, 3): x -> 2 (3 (4x + 3) + 2) + 1
    const Ints in = {rank + 2, rank + 1, rank + 2, rank + 1, rank + 2, rank + 1};
    const Ints whole = {24, 23, 24, 23, 24, 23};
    Ints out(6);
    EXPECT_OK(rondo_all_reduce_by(comm, in.data(), out.data(), 3, &reduction, nullptr));
    EXPECT_EQ(out, whole);
    EXPECT_GT(calls, 0);
    Ints at_root(6);
    EXPECT_OK(rondo_reduce_by(comm, in.data(), at_root.data(), 3, &reduction, 1, nullptr));
    EXPECT_EQ(at_root, rank == 1 ? whole : Ints(6));
    Ints own(2);
    EXPECT_OK(
        rondo_reduce_scatter_by(comm, in.data(), own.data(), 3, nullptr, &reduction, nullptr));
    EXPECT_EQ(own, (Ints{24, 23}));
    const std::array<std::size_t, kSize> counts = {0, 2, 1};
    Ints part(2 * counts[static_cast<std::size_t>(rank)]);
    EXPECT_OK(rondo_reduce_scatter_by(comm, in.data(), part.data(), 0, counts.data(), &reduction,
                                      nullptr));
    EXPECT_EQ(part, Ints(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(part.size())));
    reduction.combine = nullptr;
    EXPECT_EQ(rondo_all_reduce_by(comm, in.data(), out.data(), 3, &reduction, nullptr),
              RONDO_USAGE_ERROR);
    EXPECT_EQ(rondo_all_reduce_by(comm, in.data(), out.data(), 3, nullptr, nullptr),
              RONDO_USAGE_ERROR);
  });
}

TEST(CInterface, FindsWhereTheLeastIs) {
  struct Pair {
    double value;
    std::int32_t index;
  };
  on_ranks(kSize, [](rondo_comm* comm) {
    const int rank = rondo_rank(comm);
    rondo_reduction least = RONDO_REDUCTION(nullptr, 0);
    EXPECT_OK(rondo_location_reduction(RONDO_MIN, RONDO_F64, RONDO_I32, &least));
    EXPECT_EQ(least.element_bytes, sizeof(Pair));
    Pair pair{rank == 1 ? -2.5 : rank, rank};
    EXPECT_OK(rondo_all_reduce_by(comm, &pair, &pair, 1, &least, nullptr));
    EXPECT_EQ(pair.value, -2.5);
    EXPECT_EQ(pair.index, 1);
    EXPECT_EQ(rondo_location_reduction(RONDO_SUM, RONDO_F64, RONDO_I32, &least), RONDO_USAGE_ERROR);
    EXPECT_EQ(rondo_location_reduction(RONDO_MIN, RONDO_C64, RONDO_I32, &least), RONDO_USAGE_ERROR);
    EXPECT_EQ(rondo_location_reduction(RONDO_MIN, RONDO_F64, RONDO_F32, &least), RONDO_USAGE_ERROR);
  });
}

TEST(CInterface, MovesPartsOfDifferentSizes) {
  on_ranks(kSize, [](rondo_comm* comm) {
    const int rank = rondo_rank(comm);
    const auto own = static_cast<std::size_t>(rank);
    const std::array<std::size_t, kSize> counts = {2, 0, 3};
    const Ints whole = values_of(9, 5);
    const std::array<std::ptrdiff_t, kSize> offsets = {0, 2, 2};
    const Ints mine(whole.begin() + offsets[own],
                    whole.begin() + offsets[own] + static_cast<std::ptrdiff_t>(counts[own]));
    Ints gathered(5);
    EXPECT_OK(
        rondo_gather_v(comm, mine.data(), gathered.data(), counts.data(), RONDO_I32, 2, nullptr));
    EXPECT_EQ(gathered, rank == 2 ? whole : Ints(5));
    Ints part(counts[own]);
    EXPECT_OK(
        rondo_scatter_v(comm, whole.data(), part.data(), counts.data(), RONDO_I32, 0, nullptr));
    EXPECT_EQ(part, mine);
    // Rank r sends s + 1 elements to rank s, and so receives r + 1 of each.
    const std::array<std::size_t, kSize> sent = {1, 2, 3};
    const std::array<std::size_t, kSize> received = {own + 1, own + 1, own + 1};
    const Ints in = values_of(rank, 6);
    Ints out(3 * (own + 1));
    EXPECT_OK(rondo_all_to_all_v(comm, in.data(), sent.data(), out.data(), received.data(),
                                 RONDO_I32, nullptr));
    Ints expected;
    for (int from = 0; from < kSize; ++from) {
      const Ints theirs = values_of(from, own + 1, own * (own + 1) / 2);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    EXPECT_EQ(out, expected);
    EXPECT_EQ(
        rondo_all_to_all_v(comm, in.data(), sent.data(), out.data(), nullptr, RONDO_I32, nullptr),
        RONDO_USAGE_ERROR);
  });
}

TEST(CInterface, ReducesManyBuffersTogetherAndCallsManyTimes) {
  on_ranks(kSize, [](rondo_comm* comm) {
    const int rank = rondo_rank(comm);
    Ints first = values_of(rank, 4);
    Ints second = values_of(rank, 7, 4);
    const std::array<void*, 2> buffers = {first.data(), second.data()};
    const std::array<std::size_t, 2> counts = {4, 7};
    EXPECT_OK(rondo_all_reduce_coalesced(comm, buffers.data(), counts.data(), 2, RONDO_I32,
                                         RONDO_MAX, nullptr));
    EXPECT_EQ(first, values_of(kSize - 1, 4));
    EXPECT_EQ(second, values_of(kSize - 1, 7, 4));
    rondo_work* work = nullptr;
    EXPECT_OK(rondo_start_all_reduce_coalesced(comm, buffers.data(), counts.data(), 2, RONDO_I32,
                                               RONDO_MIN, nullptr, &work));
    EXPECT_OK(rondo_wait(work));
    rondo_work_destroy(work);
    EXPECT_EQ(second, values_of(kSize - 1, 7, 4));

    Ints out(kCount);
    Ints in(kCount);
    rondo_call call = RONDO_CALL(RONDO_ALL_REDUCE);
    call.in = in.data();
    call.out = out.data();
    call.count = kCount;
    call.type = RONDO_I32;
    rondo_prepared* prepared = nullptr;
    EXPECT_OK(rondo_prepare(comm, &call, &prepared));
    for (int round = 0; round < 4; ++round) {
      std::fill(in.begin(), in.end(), rank + round);
      if (round % 2 == 0) {
        EXPECT_OK(rondo_prepared_run(prepared));
      } else {
        EXPECT_OK(rondo_prepared_start(prepared, &work));
        EXPECT_OK(rondo_wait(work));
        rondo_work_destroy(work);
      }
      EXPECT_EQ(out, Ints(kCount, 3 + kSize * round));
    }
    rondo_prepared_destroy(prepared);
    rondo_prepared_destroy(nullptr);
    call.in = nullptr;
    EXPECT_EQ(rondo_prepare(comm, &call, &prepared), RONDO_USAGE_ERROR);
    EXPECT_EQ(prepared, nullptr);
  });
}

TEST(CInterface, SplitsAndDescribes) {
  on_ranks(kSize, [](rondo_comm* comm) {
    const int rank = rondo_rank(comm);
    const int color = rank % 2;
    rondo_comm* part = nullptr;
    EXPECT_OK(rondo_split(comm, rank == 1 ? nullptr : &color, -rank, &part));
    ASSERT_EQ(part == nullptr, rank == 1);
    if (part != nullptr) {
      EXPECT_EQ(rondo_size(part), 2);
      EXPECT_EQ(rondo_rank(part), rank == 2 ? 0 : 1) << "in the order of the keys";
      rondo_comm_destroy(part);
    }
    rondo_comm* same = nullptr;
    EXPECT_OK(rondo_duplicate(comm, &same));
    EXPECT_EQ(rondo_rank(same), rank);
    rondo_comm_destroy(same);

    rondo_place place = RONDO_PLACE;
    EXPECT_OK(rondo_get_place(comm, 2, &place));
    EXPECT_EQ(place.process_id, ::getpid());
    EXPECT_STRNE(place.host, "");
    EXPECT_STREQ(place.device, "");
    EXPECT_EQ(rondo_ring_rank(comm, 0), 0);
    EXPECT_EQ(rondo_ring_rank(comm, kSize), -1);
    ASSERT_GE(rondo_edge_count(comm), 3U);
    rondo_edge edge = RONDO_EDGE;
    EXPECT_OK(rondo_get_edge(comm, 1, &edge));
    EXPECT_EQ(edge.from, rondo_ring_rank(comm, 1));
    EXPECT_EQ(edge.to, rondo_ring_rank(comm, 2));
    EXPECT_EQ(edge.carrier, RONDO_SHM);
    EXPECT_EQ(edge.in_ring, 1);
    EXPECT_STRNE(edge.reason, "");
    EXPECT_EQ(rondo_get_edge(comm, 1000, &edge), RONDO_USAGE_ERROR);
    EXPECT_EQ(rondo_get_place(comm, -1, &place), RONDO_USAGE_ERROR);
    const char* where = nullptr;
    const int no_core = -1;
    EXPECT_OK(rondo_bind_beside_compute(comm, &no_core, &where));
    EXPECT_STRNE(where, "");
  });
  rondo_machine machine = RONDO_MACHINE;
  EXPECT_OK(rondo_this_machine(&machine));
  EXPECT_GT(machine.cores, 0);
  EXPECT_NE(rondo_launcher(), nullptr);
  EXPECT_STREQ(rondo_version(), RONDO_VERSION);
}

// A rank's error has a status and a text of its own thread.
TEST(CInterface, SaysWhatWasWrong) {
  std::thread([] { EXPECT_STREQ(rondo_last_error(), ""); }).join();
  rondo_comm* const any = reinterpret_cast<rondo_comm*>(1);
  rondo_comm* comm = any;
  EXPECT_EQ(rondo_from_socket("/nowhere/socket", 1, 1, nullptr, &comm), RONDO_USAGE_ERROR);
  EXPECT_EQ(comm, nullptr);
  EXPECT_NE(std::string(rondo_last_error()).find("rank"), std::string::npos) << rondo_last_error();
  EXPECT_EQ(rondo_from_socket(nullptr, 0, 1, nullptr, &comm), RONDO_USAGE_ERROR);
  EXPECT_STREQ(rondo_last_error(), "path is NULL");
  std::thread([] { EXPECT_STREQ(rondo_last_error(), ""); }).join();
  rondo_options options = RONDO_OPTIONS;
  options.algorithm = static_cast<rondo_algorithm>(99);
  comm = any;
  EXPECT_EQ(rondo_local_group(1, &options, &comm), RONDO_USAGE_ERROR);
  EXPECT_EQ(comm, nullptr);
  EXPECT_STREQ(rondo_last_error(), "there is no algorithm with number 99");
  options = RONDO_OPTIONS;
  options.timeout_s = -1;
  EXPECT_EQ(rondo_local_group(1, &options, &comm), RONDO_USAGE_ERROR);
  options = rondo_options{};
  EXPECT_EQ(rondo_local_group(1, &options, &comm), RONDO_USAGE_ERROR);
  EXPECT_NE(std::string(rondo_last_error()).find("struct_bytes of rondo_options"),
            std::string::npos);
  EXPECT_EQ(rondo_all_reduce(nullptr, nullptr, nullptr, 0, RONDO_F32, RONDO_SUM, nullptr),
            RONDO_USAGE_ERROR);

  on_ranks(2, [](rondo_comm* both) {
    float one = 1;
    EXPECT_EQ(rondo_duplicate(both, nullptr), RONDO_USAGE_ERROR) << "before it waits for the other";
    EXPECT_EQ(rondo_all_gather_v(both, &one, &one, nullptr, RONDO_F32, nullptr), RONDO_USAGE_ERROR);
    EXPECT_STREQ(rondo_last_error(), "counts is NULL");
    EXPECT_EQ(rondo_reduce_scatter_v(both, &one, &one, nullptr, RONDO_F32, RONDO_SUM, nullptr),
              RONDO_USAGE_ERROR);
    const auto reduce = [&](int type, int op) {
      return rondo_all_reduce(both, &one, &one, 1, static_cast<rondo_type>(type),
                              static_cast<rondo_op>(op), nullptr);
    };
    EXPECT_EQ(reduce(15, RONDO_SUM), RONDO_USAGE_ERROR);
    EXPECT_EQ(reduce(256, RONDO_SUM), RONDO_USAGE_ERROR);
    EXPECT_EQ(reduce(RONDO_F32, 11), RONDO_USAGE_ERROR);
    EXPECT_EQ(reduce(RONDO_I32, RONDO_AVG), RONDO_USAGE_ERROR);
    EXPECT_EQ(rondo_send(both, &one, 1, RONDO_F32, 7, nullptr), RONDO_USAGE_ERROR);
    EXPECT_OK(rondo_barrier(both, nullptr));
    EXPECT_EQ(rondo_ended(both), 0) << "by errors of usage";
    EXPECT_OK(rondo_barrier(both, nullptr));
    const std::size_t count = rondo_rank(both) == 0 ? 1 : 0;
    const rondo_status status =
        rondo_all_reduce(both, &one, &one, count, RONDO_F32, RONDO_SUM, nullptr);
    EXPECT_TRUE(status == RONDO_MISMATCH_ERROR || status == RONDO_PEER_ERROR) << rondo_last_error();
    EXPECT_EQ(rondo_barrier(both, nullptr), RONDO_PEER_ERROR);
  });
  on_ranks(2, [](rondo_comm* both) {
    if (rondo_rank(both) == 0) {
      EXPECT_OK(rondo_abort(both, "enough of it"));
    }
    EXPECT_EQ(rondo_barrier(both, nullptr), RONDO_PEER_ERROR);
    EXPECT_EQ(rondo_ended(both), 1);
    EXPECT_NE(std::string(rondo_last_error()).find("enough of it"), std::string::npos);
  });
  on_ranks(2, [](rondo_comm* both) {
    rondo_call_options soon = RONDO_CALL_OPTIONS;
    soon.timeout_s = 0.05;
    if (rondo_rank(both) == 0) {
      EXPECT_EQ(rondo_barrier(both, &soon), RONDO_TIMEOUT_ERROR);
    } else {
      // Joins when rank 0 has given up.
      rondo_status status = RONDO_OK;
      while (status == RONDO_OK) status = rondo_send(both, nullptr, 0, RONDO_F32, 0, nullptr);
      EXPECT_EQ(status, RONDO_PEER_ERROR);
    }
  });
}

// A program that was compiled with an earlier release gives smaller structures.
TEST(CInterface, TakesStructuresOfOtherReleases) {
  struct {
    rondo_options options = RONDO_OPTIONS;
    std::array<char, 64> later{};
  } larger;
  larger.options.struct_bytes = sizeof(larger);
  larger.options.algorithm = RONDO_RING;
  rondo_options earlier = RONDO_OPTIONS;
  earlier.struct_bytes = offsetof(rondo_options, carrier);
  earlier.algorithm = RONDO_RING;
  earlier.carrier = static_cast<rondo_carrier>(77);  // is not read
  for (const rondo_options* options : {static_cast<const rondo_options*>(&larger.options),
                                       static_cast<const rondo_options*>(&earlier)}) {
    on_ranks(
        2,
        [](rondo_comm* comm) {
          rondo_call call = RONDO_CALL(RONDO_BARRIER);
          rondo_algorithm algorithm = RONDO_DEFAULT;
          EXPECT_OK(rondo_algorithm_for(comm, &call, &algorithm));
          EXPECT_EQ(algorithm, RONDO_RING);
        },
        options);
  }
}

TEST(CInterface, NamesValues) {
  EXPECT_STREQ(rondo_type_name(RONDO_BF16), "bf16");
  EXPECT_STREQ(rondo_type_name(static_cast<rondo_type>(256)), "invalid");
  EXPECT_STREQ(rondo_type_name(static_cast<rondo_type>(-1)), "invalid");
  EXPECT_STREQ(rondo_op_name(RONDO_AVG), "avg");
  EXPECT_STREQ(rondo_collective_name(RONDO_SENDRECV), "sendrecv");
  EXPECT_STREQ(rondo_algorithm_name(RONDO_PAIRWISE), "pairwise");
  EXPECT_STREQ(rondo_algorithm_name(RONDO_DEFAULT), "default");
  EXPECT_STREQ(rondo_carrier_name(RONDO_UCX), "ucx");
  EXPECT_STREQ(rondo_carrier_name(static_cast<rondo_carrier>(9)), "invalid");
  EXPECT_STREQ(rondo_status_name(RONDO_PEER_ERROR), "peer error");
  EXPECT_EQ(rondo_algorithm_named("tree"), RONDO_TREE);
  EXPECT_EQ(rondo_algorithm_named("shrub"), RONDO_DEFAULT);
  EXPECT_EQ(rondo_supports(RONDO_F16, RONDO_AVG), 1);
  EXPECT_EQ(rondo_supports(RONDO_I64, RONDO_AVG), 0);
  EXPECT_EQ(rondo_supports(static_cast<rondo_type>(15), RONDO_SUM), 0);
  EXPECT_EQ(rondo_size_of(RONDO_F16), 2U);
  EXPECT_EQ(rondo_size_of(static_cast<rondo_type>(15)), 0U);
}

// Two parameters: gradients of one in the program's memory, of the other in the reducer's.
struct Model {
  explicit Model(int rank) : w(100, static_cast<float>(rank + 1)), b(10, 5.0F), slopes(100) {}

  std::vector<float> w;
  std::vector<float> b;
  std::vector<float> slopes;

  std::array<rondo_parameter, 2> parameters() {
    return {{RONDO_PARAMETER("w", slopes.data(), w.data(), w.size(), RONDO_F32),
             {sizeof(rondo_parameter), "b", nullptr, nullptr, b.data(), b.size(), RONDO_F32, 0}}};
  }
  void backward(rondo_reducer* reducer, int rank) {
    auto* of_b = static_cast<float*>(rondo_reducer_gradient(reducer, 1));
    for (std::size_t i = 0; i < b.size(); ++i) of_b[i] = static_cast<float>(rank * 20) + float(i);
    EXPECT_OK(rondo_reducer_mark_ready(reducer, 1));
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      slopes[i] = static_cast<float>(rank * 200) + static_cast<float>(i);
    }
    EXPECT_OK(rondo_reducer_mark_ready(reducer, 0));
  }
};

TEST(CInterface, AveragesGradients) {
  on_ranks(2, [](rondo_comm* comm) {
    const int rank = rondo_rank(comm);
    Model model(rank);
    const auto parameters = model.parameters();
    rondo_reducer* reducer = nullptr;
    rondo_gradient_options options = RONDO_GRADIENT_OPTIONS;
    options.trace = 1;
    EXPECT_OK(rondo_reducer_create(comm, parameters.data(), 2, &options, &reducer));
    EXPECT_EQ(model.w, std::vector<float>(100, 1.0F)) << "rank 0's";
    for (int step = 0; step < 3; ++step) {
      model.backward(reducer, rank);
      EXPECT_OK(rondo_reducer_finish(reducer));
      const auto* of_b = static_cast<const float*>(rondo_reducer_gradient(reducer, 1));
      EXPECT_EQ(of_b[9], 19.0F);
      EXPECT_EQ(model.slopes[99], 199.0F);
      EXPECT_EQ(rondo_reducer_gradient(reducer, 0), model.slopes.data());
    }
    EXPECT_EQ(rondo_reducer_gradient(reducer, 2), nullptr);
    EXPECT_GE(rondo_reducer_layout(reducer), 0);
    EXPECT_GT(rondo_reducer_bucket_bytes(reducer), 0U);
    EXPECT_STRNE(rondo_reducer_progress_place(reducer), "");
    std::size_t in_buckets = 0;
    for (std::size_t i = 0; i < rondo_reducer_bucket_count(reducer); ++i) {
      std::array<std::size_t, 2> of_bucket{7, 7};
      in_buckets += rondo_reducer_bucket(reducer, i, of_bucket.data(), of_bucket.size());
      EXPECT_LT(of_bucket[0], 2U);
    }
    EXPECT_EQ(in_buckets, 2U);
    EXPECT_EQ(rondo_reducer_bucket(reducer, 100, nullptr, 0), 0U);
    rondo_gradient_statistics statistics = RONDO_GRADIENT_STATISTICS;
    EXPECT_OK(rondo_reducer_statistics(reducer, &statistics));
    EXPECT_EQ(statistics.iteration, 3U);
    EXPECT_EQ(statistics.bytes, 440U);
    rondo_bucket_statistics bucket = RONDO_BUCKET_STATISTICS;
    EXPECT_OK(rondo_reducer_bucket_statistics(reducer, 0, &bucket));
    EXPECT_GT(bucket.bytes, 0U);
    EXPECT_EQ(rondo_reducer_bucket_statistics(reducer, 100, &bucket), RONDO_USAGE_ERROR);

    EXPECT_OK(rondo_reducer_begin_no_sync(reducer));
    EXPECT_EQ(rondo_reducer_begin_no_sync(reducer), RONDO_USAGE_ERROR);
    model.backward(reducer, rank);
    EXPECT_OK(rondo_reducer_finish(reducer));
    EXPECT_EQ(model.slopes[99], static_cast<float>(rank * 200 + 99)) << "not averaged";
    EXPECT_OK(rondo_reducer_end_no_sync(reducer));
    EXPECT_EQ(rondo_reducer_end_no_sync(reducer), RONDO_USAGE_ERROR);

    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const std::int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    EXPECT_OK(rondo_reducer_record_compute(reducer, "thinking", ns - 1000, ns));
    const std::string file = "/tmp/rondo-c-trace-" + std::to_string(::getpid());
    EXPECT_OK(rondo_reducer_write_trace(reducer, file.c_str()));
    if (rank == 0) {
      std::string text;
      std::getline(std::ifstream(file), text, '\0');
      EXPECT_NE(text.find("thinking"), std::string::npos);
      ::unlink(file.c_str());
    }
    EXPECT_EQ(rondo_reducer_count(reducer, 1), 10U);
    EXPECT_EQ(rondo_reducer_count(reducer, 2), 0U);
    std::array<std::size_t, 2> arrival{7, 7};
    EXPECT_EQ(rondo_reducer_arrival(reducer, arrival.data(), 1), 2U);
    EXPECT_EQ(arrival, (std::array<std::size_t, 2>{1, 7}));
    rondo_reducer_destroy(reducer);
  });
}

TEST(CInterface, RefusesWrongMarks) {
  on_ranks(1, [](rondo_comm* comm) {
    Model model(0);
    const auto parameters = model.parameters();
    rondo_reducer* reducer = nullptr;
    EXPECT_OK(rondo_reducer_create(comm, parameters.data(), 2, nullptr, &reducer));
    EXPECT_EQ(rondo_reducer_mark_ready_at(reducer, 0, model.w.data(), 100, RONDO_F32),
              RONDO_USAGE_ERROR)
        << "that is not the gradient";
    EXPECT_EQ(rondo_reducer_mark_ready(reducer, 7), RONDO_USAGE_ERROR);
    EXPECT_EQ(rondo_reducer_finish(reducer), RONDO_USAGE_ERROR);
    EXPECT_OK(rondo_reducer_mark_ready_at(reducer, 0, model.slopes.data(), 100, RONDO_F32));
    rondo_reducer_destroy(reducer);
  });
}

TEST(CInterface, AveragesBySamplesUntilAllHaveJoined) {
  on_ranks(2, [](rondo_comm* comm) {
    const int rank = rondo_rank(comm);
    Model model(rank);
    const auto parameters = model.parameters();
    rondo_reducer* reducer = nullptr;
    rondo_gradient_options options = RONDO_GRADIENT_OPTIONS;
    options.average = RONDO_AVERAGE_SAMPLES;
    EXPECT_OK(rondo_reducer_create(comm, parameters.data(), 2, &options, &reducer));
    for (int step = 0; step < 2 - rank; ++step) {
      EXPECT_OK(rondo_reducer_set_samples(reducer, rank == 0 ? 3 : 1));
      model.backward(reducer, rank);
      EXPECT_OK(rondo_reducer_finish(reducer));
      EXPECT_EQ(model.slopes[99], step == 0 ? (3 * 99.0F + 299.0F) / 4 : 99.0F);
    }
    int iterations = 0;
    EXPECT_OK(
        rondo_reducer_join(reducer, [](void* user) { ++*static_cast<int*>(user); }, &iterations));
    EXPECT_EQ(iterations, rank);
    rondo_reducer_destroy(reducer);
  });
}

TEST(CInterface, SumsBucketsByAHook) {
  on_ranks(2, [](rondo_comm* comm) {
    const int rank = rondo_rank(comm);
    Model model(rank);
    const auto parameters = model.parameters();
    std::atomic<int> calls = 0;
    rondo_reducer* reducer = nullptr;
    rondo_gradient_options options = RONDO_GRADIENT_OPTIONS;
    options.average = RONDO_AVERAGE_SUM;
    options.user = &calls;
    options.hook = [](void* user, rondo_comm* of_reducer, const rondo_bucket* bucket) {
      ++*static_cast<std::atomic<int>*>(user);
      return rondo_all_reduce(of_reducer, bucket->data, bucket->data, bucket->count, bucket->type,
                              RONDO_SUM, nullptr);
    };
    EXPECT_OK(rondo_reducer_create(comm, parameters.data(), 2, &options, &reducer));
    model.backward(reducer, rank);
    EXPECT_OK(rondo_reducer_finish(reducer));
    EXPECT_GT(calls, 0);
    EXPECT_EQ(model.slopes[99], 398.0F);
    rondo_reducer_destroy(reducer);
    // A status of its own, without an error of Rondo's.
    options.hook = [](void*, rondo_comm*, const rondo_bucket*) { return RONDO_TIMEOUT_ERROR; };
    EXPECT_OK(rondo_reducer_create(comm, parameters.data(), 2, &options, &reducer));
    model.backward(reducer, rank);
    const rondo_status status = rondo_reducer_finish(reducer);
    EXPECT_TRUE(status == RONDO_TIMEOUT_ERROR || status == RONDO_PEER_ERROR) << status;
    EXPECT_NE(std::string(rondo_last_error()).find("the hook has returned timeout error"),
              std::string::npos)
        << rondo_last_error();
    EXPECT_NE(rondo_barrier(comm, nullptr), RONDO_OK) << "the communicator has ended";
    rondo_reducer_destroy(reducer);
  });
}

}  // namespace
}  // namespace rondo::test

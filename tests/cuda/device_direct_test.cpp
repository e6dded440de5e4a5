// Calls by direct on device memory: who reaches what, and that calls agree on it. Runs on the
// stand-in everywhere, and, linked with the CUDA runtime, on a GPU.

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cuda/device_checks.hpp"
#include "tests/support/collective_checks.hpp"

namespace rondo::test {
namespace {

namespace api = detail::gpu::api;

// Each rank on a thread of its own, and on the next device in turn.
void on_ranks(int ranks, const std::function<void(DeviceRank&)>& body,
              const CommunicatorOptions& host_options = {}) {
  std::vector<int> devices;
  for (int rank = 0; rank < ranks; ++rank) devices.push_back(rank % cuda::device_count());
  std::vector<cuda::Communicator> group = cuda::local_group(devices, {}, host_options);
  std::vector<std::exception_ptr> errors(group.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < group.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        const detail::gpu::DeviceScope scope(group[i].device());
        DeviceRank rank(group[i]);
        body(rank);
      } catch (...) {
        errors[i] = std::current_exception();
        group[i].abort("its test has failed");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

class DeviceDirect : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device: " << cuda::why_no_device();
  }
};

template <class T>
void prepare_registered(DeviceRank& rank, std::size_t count, Algorithm algorithm) {
  using What = typename DeviceCall<T>::What;
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
        Collective::broadcast, Collective::reduce}) {
    for (const bool in_place : {false, true}) {
      rank.prepare<T>(What{collective, ReduceOp::sum, algorithm, count,
                           static_cast<int>(count) % rank.comm().size(), in_place, count % 3,
                           true});
    }
  }
}

TEST_P(DeviceDirect, EveryCollectiveInRegisteredMemory) {
  on_ranks(GetParam(), [](DeviceRank& rank) {
    for (const std::size_t count : {1U, 7U, 1000U, 20011U}) {
      prepare_registered<float>(rank, count, Algorithm::direct);
      prepare_registered<BFloat16>(rank, count, Algorithm::automatic);
      rank.run();
    }
  });
}

// The memory of one rank is not registered, of another in a later call, and so on: all ranks then
// take the ring.
TEST_P(DeviceDirect, OneRankWithOtherMemoryIsNoticedByAll) {
  on_ranks(GetParam(), [](DeviceRank& rank) {
    using What = DeviceCall<float>::What;
    const int size = rank.comm().size();
    const auto used = [&](bool registered) {
      return registered ? Algorithm::direct : Algorithm::ring;
    };
    constexpr std::size_t kCount = 30011;
    const cuda::RegisteredMemory<float> memory = rank.comm().allocate<float>(kCount);
    const DeviceBuffer<float> other(rank.comm().device(), kCount, 1.0F);
    for (int call = 0; call < 3 * size; ++call) {
      rank.prepare<float>(What{Collective::broadcast, ReduceOp::sum, Algorithm::automatic, 5000,
                               call % size, true, 0, false});
      const bool registered = size == 1 || call % size != rank.comm().rank();
      const std::span<float> buffer = registered ? memory.span() : other.span();
      if (size > 1 && cuda::device_count() > 1) {
        EXPECT_EQ(rank.comm().algorithm_for(all_reduce_of(buffer)), used(registered));
      }
      rank.add([&rank, buffer] { rank.comm().all_reduce(buffer, ReduceOp::max, rank.stream()); });
    }
    rank.run();
  });
}

// Destroyed at different times; memory that all have destroyed is given back, and calls go on with
// the rest.
TEST_P(DeviceDirect, MemoryIsFreedInAnyOrder) {
  on_ranks(GetParam(), [](DeviceRank& rank) {
    std::vector<cuda::RegisteredMemory<std::int32_t>> kept;
    for (int round = 0; round < 4; ++round) {
      auto memory =
          rank.comm().allocate<std::int32_t>(5000 + static_cast<std::size_t>(rank.comm().rank()));
      EXPECT_EQ(memory.size(), 5000U + static_cast<std::size_t>(rank.comm().rank()));
      const std::vector<std::int32_t> ones(5000, 1);
      api::copy(memory.data(), ones.data(), 5000 * sizeof(std::int32_t));
      rank.comm().host().barrier();
      rank.comm().all_reduce(memory.span().first(5000), ReduceOp::sum, rank.stream());
      rank.comm().wait(rank.stream());
      std::vector<std::int32_t> sums(5000);
      api::copy(sums.data(), memory.data(), 5000 * sizeof(std::int32_t));
      EXPECT_EQ(sums, std::vector<std::int32_t>(5000, rank.comm().size()));
      rank.comm().host().barrier();
      if ((round + rank.comm().rank()) % 2 == 0) kept.push_back(std::move(memory));
    }
    EXPECT_EQ(rank.comm().allocate<float>(0).size(), 0U);
  });
}

TEST_P(DeviceDirect, CapturedCallsFindOutAtEachReplay) {
  on_ranks(GetParam(), [](DeviceRank& rank) {
    constexpr std::size_t kCount = 40000;
    const auto size = static_cast<std::uint32_t>(rank.comm().size());
    const cuda::RegisteredMemory<std::uint32_t> memory =
        rank.comm().allocate<std::uint32_t>(kCount);
    const DeviceBuffer<std::uint32_t> other(rank.comm().device(), kCount, 1);
    const std::vector<std::uint32_t> ones(kCount, 1);
    api::copy(memory.data(), ones.data(), kCount * sizeof(std::uint32_t));
    api::begin_capture(rank.stream());
    rank.comm().all_reduce(memory.span(), ReduceOp::sum, rank.stream());
    rank.comm().all_reduce(rank.comm().rank() == 0 ? other.span() : memory.span(), ReduceOp::max,
                           rank.stream());
    const api::Graph graph = api::end_capture(rank.stream());
    rank.comm().host().barrier();
    for (int replay = 0; replay < 3; ++replay) api::launch(graph, rank.stream());
    rank.comm().wait(rank.stream());
    std::vector<std::uint32_t> values(kCount);
    api::copy(values.data(), memory.data(), kCount * sizeof(std::uint32_t));
    // Rank 0's `memory` takes no part in the maximum, but is as large as it.
    EXPECT_EQ(values, std::vector<std::uint32_t>(kCount, size * size * size));
    rank.comm().host().barrier();
    api::destroy(graph);
    rank.comm().host().barrier();
  });
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

// Values whose sums depend on the order of additions, by one_shot, in parts, and in one call: the
// same bits.
TEST_P(DeviceDirect, BitsDoNotDependOnSizeOrAlgorithm) {
  on_ranks(GetParam(),
           [](DeviceRank& rank) {
             constexpr std::size_t kCount = 6000;
             const auto check = [&]<class T>(T /*type*/) {
               std::vector<T> values;
               for (std::size_t i = 0; i < kCount; ++i) {
                 const std::size_t mixed =
                     (i * 2654435761U + static_cast<std::size_t>(rank.comm().rank()) * 40503U) %
                     1000003;
                 values.push_back(exact::from_double<T>(static_cast<double>(mixed) * 1e-3));
               }
               const auto sum_by = [&](Algorithm algorithm, std::size_t part) {
                 const DeviceBuffer<T> buffer(rank.comm(), values);
                 CallOptions options;
                 options.algorithm = algorithm;
                 for (std::size_t at = 0; at < kCount; at += part) {
                   rank.comm().all_reduce(buffer.span().subspan(at, part), ReduceOp::avg,
                                          rank.stream(), options);
                 }
                 rank.comm().wait(rank.stream());
                 std::vector<T> result = buffer.read();
                 rank.comm().host().barrier();
                 return result;
               };
               const std::vector<T> whole = sum_by(Algorithm::automatic, kCount);
               for (const std::size_t part : {kCount, kCount / 4, kCount / 60}) {
                 const std::vector<T> direct = sum_by(Algorithm::direct, part);
                 EXPECT_TRUE(same_bits(direct, whole));
                 if (rank.comm().size() == 1) continue;
                 const std::vector<T> one_shot = sum_by(Algorithm::one_shot, part);
                 EXPECT_TRUE(same_bits(one_shot, whole));
               }
             };
             check(float{});
             check(Float16{});
             check(BFloat16{});
           },
           {.rank_order = true});
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceDirect, ::testing::Values(1, 2, 3, 4, 7));

TEST(DeviceDirectErrors, OtherMemoryIsRefusedWhereItCannotBeUsed) {
  if (cuda::device_count() < 2) GTEST_SKIP() << "needs two devices";
  on_ranks(2, [](DeviceRank& rank) {
    const DeviceBuffer<float> other(rank.comm().device(), 50000, 1.0F);
    CallOptions direct;
    direct.algorithm = Algorithm::direct;
    EXPECT_THROW(rank.comm().all_reduce(other.span(), ReduceOp::sum, rank.stream(), direct),
                 UsageError);
    // Nor can an empty call, which needs no buffers, go by direct before any memory is registered.
    EXPECT_THROW(rank.comm().barrier(rank.stream(), direct), UsageError);
    const cuda::RegisteredMemory<float> memory = rank.comm().allocate<float>(50000);
    EXPECT_THROW(rank.comm().all_reduce(other.span(), ReduceOp::sum, rank.stream(), direct),
                 UsageError);
    EXPECT_THROW(static_cast<void>(rank.comm().allocate<double>(SIZE_MAX / 4)), UsageError);
    rank.comm().all_reduce(memory.span(), ReduceOp::sum, rank.stream(), direct);
    rank.comm().wait(rank.stream());
    rank.comm().host().barrier();
  });
  on_ranks(3,
           [](DeviceRank& rank) {
             const DeviceBuffer<float> other(rank.comm().device(), 50000, 1.0F);
             EXPECT_THROW(rank.comm().all_reduce(other.span(), ReduceOp::sum, rank.stream()),
                          UsageError);
             rank.comm().broadcast(other.span(), 0, rank.stream());  // whose bits no order changes
             rank.comm().wait(rank.stream());
             rank.comm().host().barrier();
           },
           {.rank_order = true});
}

}  // namespace
}  // namespace rondo::test

// Programs for NCCL on Rondo's libnccl: their calls give the answers that NCCL documents.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/nccl/functions.hpp"
#include "adapters/nccl/group.hpp"
#include "bench/exact_values.hpp"
#include "tests/cuda/device_buffer.hpp"
#include "tests/support/forked.hpp"

namespace rondo::test {
namespace {

using Floats = std::vector<float>;

// One rank of a program that drives all of them from one thread, as nccl-tests does.
struct Rank {
  ncclComm_t comm = nullptr;
  std::unique_ptr<DeviceStream> stream;
};

class Ranks {
 public:
  explicit Ranks(int size) : ranks_(static_cast<std::size_t>(size)) {
    std::vector<ncclComm_t> comms(ranks_.size());
    const std::vector<int> devices = spread(size);
    EXPECT_EQ(ncclCommInitAll(comms.data(), size, devices.data()), ncclSuccess)
        << ncclGetLastError(nullptr);
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      ranks_[i].comm = comms[i];
      ranks_[i].stream = std::make_unique<DeviceStream>(devices[i]);
    }
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() {
    for (const Rank& rank : ranks_) EXPECT_EQ(ncclCommDestroy(rank.comm), ncclSuccess);
  }
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int device_of(int rank) const {
    int device = -1;
    EXPECT_EQ(ncclCommCuDevice(at(rank).comm, &device), ncclSuccess);
    return device;
  }

  // Makes a call on each rank, in one group, and waits for them.
  template <class Make>
  void together(const Make& make) const {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < size(); ++rank) {
      EXPECT_EQ(make(rank, at(rank).comm, at(rank).stream->get()), ncclSuccess)
          << ncclGetLastError(nullptr);
    }
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    for (const Rank& rank : ranks_) detail::gpu::api::wait_for(rank.stream->get());
  }

 private:
  std::vector<Rank> ranks_;
};

// Different in every element and rank, and small enough for exact sums.
float value(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 1000);
}
Floats values(int rank, std::size_t count, std::size_t first = 0) {
  Floats all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = value(rank, first + i);
  return all;
}
Floats sums(int size, std::size_t count, std::size_t first = 0) {
  Floats all(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (int rank = 0; rank < size; ++rank) all[i] += value(rank, first + i);
  }
  return all;
}

class Nccl : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device";
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Nccl, ::testing::Values(1, 2, 3, 4),
                         [](const auto& size) { return std::to_string(size.param); });

constexpr std::size_t kCount = 5001;

// A buffer for each rank.
using Buffers = std::deque<DeviceBuffer<float>>;
template <class Values>
Buffers buffers_of(const Ranks& ranks, const Values& its_values) {
  Buffers all;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    all.emplace_back(ranks.device_of(rank), Floats(its_values(rank)));
  }
  return all;
}
float* data(Buffers& buffers, int rank) {
  return buffers[static_cast<std::size_t>(rank)].span().data();
}
Floats read(const Buffers& buffers, int rank) {
  return buffers[static_cast<std::size_t>(rank)].read();
}

TEST_P(Nccl, AllReduce) {
  const Ranks ranks(GetParam());
  Buffers in = buffers_of(ranks, [](int rank) { return values(rank, kCount); });
  Buffers out = buffers_of(ranks, [](int) { return Floats(kCount); });
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclAllReduce(data(in, rank), data(out, rank), kCount, ncclFloat32, ncclSum, comm,
                         stream);
  });
  for (int rank = 0; rank < ranks.size(); ++rank) {
    EXPECT_EQ(read(out, rank), sums(ranks.size(), kCount));
    EXPECT_EQ(read(in, rank), values(rank, kCount));
  }
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclAllReduce(data(in, rank), data(in, rank), kCount, ncclFloat32, ncclMax, comm,
                         stream);
  });
  Floats largest(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    for (int rank = 0; rank < ranks.size(); ++rank) {
      largest[i] = std::max(largest[i], value(rank, i));
    }
  }
  for (int rank = 0; rank < ranks.size(); ++rank) EXPECT_EQ(read(in, rank), largest);
}

TEST_P(Nccl, EachOperationAndType) {
  const Ranks ranks(GetParam());
  const auto run = [&]<class T>(T, ncclDataType_t type, ncclRedOp_t op, double expected) {
    std::deque<DeviceBuffer<T>> all;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      all.emplace_back(ranks.device_of(rank), std::vector<T>(9, exact::from_double<T>(rank + 2)));
    }
    ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
      T* const buffer = all[static_cast<std::size_t>(rank)].span().data();
      return ncclAllReduce(buffer, buffer, 9, type, op, comm, stream);
    });
    for (const DeviceBuffer<T>& one : all) {
      EXPECT_EQ(one.read(), std::vector<T>(9, exact::from_double<T>(expected)))
          << type << " " << op;
    }
  };
  const int size = ranks.size();
  const double sum = size * (size + 3) / 2.0;
  const double product = std::tgamma(size + 2);
  for (const auto& [op, expected] :
       {std::pair(ncclSum, sum), {ncclProd, product}, {ncclMax, size + 1.0}, {ncclMin, 2.0}}) {
    run(std::int8_t{}, ncclInt8, op, expected);
    run(std::uint8_t{}, ncclUint8, op, expected);
    run(std::int32_t{}, ncclInt32, op, expected);
    run(std::uint32_t{}, ncclUint32, op, expected);
    run(std::int64_t{}, ncclInt64, op, expected);
    run(std::uint64_t{}, ncclUint64, op, expected);
    run(Float16{}, ncclFloat16, op, expected);
    run(BFloat16{}, ncclBfloat16, op, expected);
    run(float{}, ncclFloat32, op, expected);
    run(double{}, ncclFloat64, op, expected);
  }
  if (size == 2 || size == 4) run(double{}, ncclFloat64, ncclAvg, sum / size);
}

TEST_P(Nccl, RootedAndChunkedCollectives) {
  const Ranks ranks(GetParam());
  const int size = ranks.size();
  const int root = size - 1;
  const auto whole = kCount * static_cast<std::size_t>(size);
  const auto chunk_of = [](int rank) { return kCount * static_cast<std::size_t>(rank); };

  Buffers small = buffers_of(ranks, [](int rank) { return values(rank, kCount); });
  Buffers large = buffers_of(ranks, [&](int) { return Floats(whole); });
  Floats gathered;
  for (int rank = 0; rank < size; ++rank) {
    const Floats its = values(rank, kCount);
    gathered.insert(gathered.end(), its.begin(), its.end());
  }
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclAllGather(data(small, rank), data(large, rank), kCount, ncclFloat32, comm, stream);
  });
  for (int rank = 0; rank < size; ++rank) EXPECT_EQ(read(large, rank), gathered);
  // In place: each rank's chunk is where it belongs.
  for (int rank = 0; rank < size; ++rank) {
    Floats own(whole);
    std::copy_n(values(rank, kCount).begin(), kCount,
                own.begin() + static_cast<std::ptrdiff_t>(chunk_of(rank)));
    large[static_cast<std::size_t>(rank)].write(own);
  }
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclAllGather(data(large, rank) + chunk_of(rank), data(large, rank), kCount, ncclFloat32,
                         comm, stream);
  });
  for (int rank = 0; rank < size; ++rank) EXPECT_EQ(read(large, rank), gathered);

  Buffers parts = buffers_of(ranks, [](int) { return Floats(kCount); });
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclReduceScatter(data(large, rank), data(parts, rank), kCount, ncclFloat32, ncclSum,
                             comm, stream);
  });
  for (int rank = 0; rank < size; ++rank) {
    Floats expected = values(rank, kCount);
    for (float& one : expected) one *= static_cast<float>(size);
    EXPECT_EQ(read(parts, rank), expected);
  }
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclReduce(data(small, rank), rank == root ? data(parts, rank) : nullptr, kCount,
                      ncclFloat32, ncclSum, root, comm, stream);
  });
  EXPECT_EQ(read(parts, root), sums(size, kCount));
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclBroadcast(data(small, rank), data(parts, rank), kCount, ncclFloat32, root, comm,
                         stream);
  });
  for (int rank = 0; rank < size; ++rank) EXPECT_EQ(read(parts, rank), values(root, kCount));
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclScatter(data(large, rank), data(parts, rank), kCount, ncclFloat32, root, comm,
                       stream);
  });
  for (int rank = 0; rank < size; ++rank) EXPECT_EQ(read(parts, rank), values(rank, kCount));
  Buffers other = buffers_of(ranks, [&](int) { return Floats(whole); });
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclGather(data(parts, rank), data(other, rank), kCount, ncclFloat32, root, comm,
                      stream);
  });
  EXPECT_EQ(read(other, root), gathered);
  // Every rank has the same for each, so that it gets its own number's chunk from all.
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclAlltoAll(data(large, rank), data(other, rank), kCount, ncclFloat32, comm, stream);
  });
  for (int rank = 0; rank < size; ++rank) {
    for (int from = 0; from < size; ++from) {
      const Floats all = read(other, rank);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(chunk_of(from));
      EXPECT_EQ(Floats(begin, begin + kCount), values(rank, kCount));
    }
  }
}

// Every rank sends to every rank, itself among them: messages of different sizes, of which some are
// much larger than a FIFO, and two for each pair, so that all of them wait for each other.
TEST_P(Nccl, MessagesOfAGroupWaitForNoOrder) {
  const Ranks ranks(GetParam());
  const int size = ranks.size();
  const auto count = [](int from, int to) {
    return static_cast<std::size_t>((from * 5 + to * 3) % 4) * 300'000 + 1;
  };
  std::map<std::pair<int, int>, DeviceBuffer<float>> sent, received, sent_then, received_then;
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      const std::pair both(from, to);
      const std::size_t many = count(from, to);
      sent.try_emplace(both, ranks.device_of(from), values(from + 10 * to, many));
      received.try_emplace(both, ranks.device_of(to), Floats(many));
      sent_then.try_emplace(both, ranks.device_of(from), values(from + 10 * to, 10, 5));
      received_then.try_emplace(both, ranks.device_of(to), Floats(10));
    }
  }
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    ncclResult_t result = ncclSuccess;
    const auto add = [&](ncclResult_t one) { result = one == ncclSuccess ? result : one; };
    for (int peer = 0; peer < size; ++peer) {
      const std::pair to(rank, peer), from(peer, rank);
      add(ncclSend(sent.at(to).span().data(), count(rank, peer), ncclFloat32, peer, comm, stream));
      add(ncclSend(sent_then.at(to).span().data(), 10, ncclFloat32, peer, comm, stream));
      add(ncclRecv(received.at(from).span().data(), count(peer, rank), ncclFloat32, peer, comm,
                   stream));
      add(ncclRecv(received_then.at(from).span().data(), 10, ncclFloat32, peer, comm, stream));
    }
    return result;
  });
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      const std::pair both(from, to);
      EXPECT_EQ(received.at(both).read(), values(from + 10 * to, count(from, to)));
      EXPECT_EQ(received_then.at(both).read(), values(from + 10 * to, 10, 5));
    }
  }
}

// A thread that drives several ranks must not wait in the calls of one before it has made those of
// the others.
TEST_P(Nccl, AGroupMayHoldMoreCallsThanARankMayBeAhead) {
  const Ranks ranks(GetParam());
  Buffers buffers = buffers_of(ranks, [](int rank) { return values(rank, 3); });
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    for (int call = 0; call < 100; ++call) {
      const ncclResult_t result = ncclAllReduce(data(buffers, rank), data(buffers, rank), 3,
                                                ncclFloat32, ncclMin, comm, stream);
      if (result != ncclSuccess) return result;
    }
    return ncclSuccess;
  });
  for (int rank = 0; rank < ranks.size(); ++rank) EXPECT_EQ(read(buffers, rank), values(0, 3));
}

// As nccl-tests runs: messages whose buffers are the same, and a rank's own part that is already
// where it goes.
TEST_P(Nccl, MessagesMayBeInPlace) {
  const Ranks ranks(GetParam());
  const int size = ranks.size();
  Buffers buffers = buffers_of(ranks, [](int rank) { return values(rank, kCount); });
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    float* const buffer = data(buffers, rank);
    const ncclResult_t sent =
        ncclSend(buffer, kCount, ncclFloat32, (rank + 1) % size, comm, stream);
    const ncclResult_t received =
        ncclRecv(buffer, kCount, ncclFloat32, (rank + size - 1) % size, comm, stream);
    return sent != ncclSuccess ? sent : received;
  });
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(read(buffers, rank), values((rank + size - 1) % size, kCount));
  }
  const std::size_t whole = kCount * static_cast<std::size_t>(size);
  Buffers all = buffers_of(ranks, [&](int rank) { return values(rank, whole); });
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    return ncclAlltoAll(data(all, rank), data(all, rank), kCount, ncclFloat32, comm, stream);
  });
  for (int rank = 0; rank < size; ++rank) {
    Floats expected;
    for (int from = 0; from < size; ++from) {
      const Floats chunk = values(from, kCount, kCount * static_cast<std::size_t>(rank));
      expected.insert(expected.end(), chunk.begin(), chunk.end());
    }
    EXPECT_EQ(read(all, rank), expected);
  }
}

// Rank 0 has many more messages than the others, which would wait in theirs for it.
TEST_P(Nccl, ManyMessagesOfOneRankWaitForNoOther) {
  const Ranks ranks(GetParam());
  const int size = ranks.size();
  constexpr std::size_t kTimes = 200;
  Buffers in = buffers_of(ranks, [](int rank) { return values(rank, kTimes); });
  Buffers out = buffers_of(ranks, [](int) { return Floats(kTimes); });
  ranks.together([&](int rank, ncclComm_t comm, cudaStream_t stream) {
    ncclResult_t result = ncclSuccess;
    const auto add = [&](ncclResult_t one) { result = one == ncclSuccess ? result : one; };
    for (std::size_t i = 0; i < kTimes; ++i) {
      for (int peer = 0; rank == 0 && peer < size; ++peer) {
        add(ncclSend(data(in, 0) + i, 1, ncclFloat32, peer, comm, stream));
      }
      add(ncclRecv(data(out, rank) + i, 1, ncclFloat32, 0, comm, stream));
    }
    return result;
  });
  for (int rank = 0; rank < size; ++rank) EXPECT_EQ(read(out, rank), values(0, kTimes));
}

TEST_P(Nccl, AWrongCallLeavesItsGroupUnmade) {
  const Ranks ranks(GetParam());
  Buffers buffers = buffers_of(ranks, [](int rank) { return values(rank, kCount); });
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const Rank& one = ranks.at(rank);
    EXPECT_EQ(ncclAllReduce(data(buffers, rank), data(buffers, rank), kCount, ncclFloat32, ncclSum,
                            one.comm, one.stream->get()),
              ncclSuccess);
    if (rank > 0) continue;
    EXPECT_EQ(ncclBroadcast(data(buffers, rank), data(buffers, rank), kCount, ncclFloat32, 99,
                            one.comm, one.stream->get()),
              ncclSuccess);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("99"), std::string::npos);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  const Rank& first = ranks.at(0);
  EXPECT_EQ(ncclAllReduce(data(buffers, 0), data(buffers, 0), kCount, ncclFloat32, ncclSum,
                          first.comm, first.stream->get()),
            ncclSuccess);
  EXPECT_EQ(ncclSend(data(buffers, 0), kCount, ncclFloat32, 7, first.comm, first.stream->get()),
            ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 1, ncclFloat8e4m3, ncclSum, first.comm, nullptr),
            ncclInvalidUsage);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    detail::gpu::api::wait_for(ranks.at(rank).stream->get());
    EXPECT_EQ(read(buffers, rank), values(rank, kCount));
  }
}

// As PyTorch aborts: all communicators of a process in one group, while others wait for one that
// will not come.
TEST_P(Nccl, AGroupAbortsAll) {
  const int size = GetParam();
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(size));
  ASSERT_EQ(ncclCommInitAll(comms.data(), size, spread(size).data()), ncclSuccess);
  std::deque<DeviceStream> streams;
  std::deque<DeviceBuffer<float>> buffers;
  for (int rank = 1; rank < size; ++rank) {
    const int device = spread(size)[static_cast<std::size_t>(rank)];
    streams.emplace_back(device);
    float* const buffer = buffers.emplace_back(device, values(rank, kCount)).span().data();
    EXPECT_EQ(ncclAllReduce(buffer, buffer, kCount, ncclFloat32, ncclSum,
                            comms[static_cast<std::size_t>(rank)], streams.back().get()),
              ncclSuccess);
  }
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
}

TEST_P(Nccl, MemoryIsTheDevices) {
  const Ranks ranks(GetParam());
  ncclComm_t const comm = ranks.at(0).comm;
  void* memory = nullptr;
  void* handle = nullptr;
  ASSERT_EQ(ncclMemAlloc(&memory, 1000), ncclSuccess);
  EXPECT_NE(memory, nullptr);
  EXPECT_EQ(ncclCommRegister(comm, memory, 1000, &handle), ncclSuccess);
  EXPECT_EQ(ncclCommDeregister(comm, handle), ncclSuccess);
  EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
}

TEST_P(Nccl, SplitsOfOneThread) {
  const Ranks ranks(GetParam());
  std::vector<ncclComm_t> parts(static_cast<std::size_t>(ranks.size()));
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    EXPECT_EQ(ncclCommSplit(ranks.at(rank).comm, rank == 0 ? kNcclSplitNoColor : 7, -rank,
                            &parts[static_cast<std::size_t>(rank)], nullptr),
              ncclSuccess);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(parts[0], nullptr);
  for (int rank = 1; rank < ranks.size(); ++rank) {
    ncclComm_t part = parts[static_cast<std::size_t>(rank)];
    int size = 0, its_rank = -1;
    EXPECT_EQ(ncclCommCount(part, &size), ncclSuccess);
    EXPECT_EQ(ncclCommUserRank(part, &its_rank), ncclSuccess);
    EXPECT_EQ(size, ranks.size() - 1);
    EXPECT_EQ(its_rank, ranks.size() - 1 - rank);
    EXPECT_EQ(ncclCommFinalize(part), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 1, ncclFloat32, ncclSum, part, nullptr),
              ncclInvalidArgument);
  }
  for (int rank = 1; rank < ranks.size(); ++rank) {
    EXPECT_EQ(ncclCommDestroy(parts[static_cast<std::size_t>(rank)]), ncclSuccess);
  }
}

// One thread joins several ranks by one id, in a group.
TEST_P(Nccl, RanksOfOneThreadJoinByAnId) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess) << ncclGetLastError(nullptr);
  const int size = GetParam();
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(size));
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < size; ++rank) {
    const detail::gpu::DeviceScope scope(spread(size)[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(
        ncclCommInitRankConfig(&comms[static_cast<std::size_t>(rank)], size, id, rank, nullptr),
        ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  for (int rank = 0; rank < size; ++rank) {
    int device = -1;
    EXPECT_EQ(ncclCommCuDevice(comms[static_cast<std::size_t>(rank)], &device), ncclSuccess);
    EXPECT_EQ(device, spread(size)[static_cast<std::size_t>(rank)]);
  }
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST_P(Nccl, AnAbortReachesAllRanks) {
  const Ranks ranks(GetParam());
  ncclResult_t error = ncclInternalError;
  EXPECT_EQ(ncclCommGetAsyncError(ranks.at(0).comm, &error), ncclSuccess);
  EXPECT_EQ(error, ncclSuccess);
  EXPECT_EQ(ncclCommRevoke(ranks.at(ranks.size() - 1).comm, 0), ncclSuccess);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    EXPECT_EQ(ncclCommGetAsyncError(ranks.at(rank).comm, &error), ncclSuccess);
    EXPECT_EQ(error, ncclRemoteError);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("ncclCommRevoke"), std::string::npos);
  }
}

TEST_P(Nccl, WhatRondoLacksIsSaid) {
  const Ranks ranks(GetParam());
  ncclComm_t const comm = ranks.at(0).comm;
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 1, ncclFloat8e4m3, ncclSum, comm, nullptr),
            ncclInvalidUsage);
  EXPECT_NE(std::string(ncclGetLastError(comm)).find("ncclAllReduce"), std::string::npos);
  EXPECT_NE(std::string(ncclGetLastError(comm)).find("RONDO_NCCL_FALLBACK"), std::string::npos);
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 1, ncclInt32, ncclAvg, comm, nullptr),
            ncclInvalidUsage);
  EXPECT_EQ(ncclCommWindowRegister(comm, nullptr, 1, nullptr, 0), ncclInvalidUsage);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 1, ncclFloat32, ncclSum, nullptr, nullptr),
            ncclInvalidArgument);
  EXPECT_EQ(ncclSend(nullptr, 1, ncclFloat32, ranks.size(), comm, nullptr), ncclInvalidArgument);
  ncclComm_t made = nullptr;
  EXPECT_EQ(ncclCommInitRank(&made, 1, ncclUniqueId{}, 0), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(comm)).find("do all processes use one library"),
            std::string::npos);
}

TEST(NcclProcesses, JoinByAnIdThatOneOfThemMade) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess) << ncclGetLastError(nullptr);
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    if (cuda::device_count() == 0) return 77;
    ncclComm_t comm = nullptr;
    if (ncclCommInitRank(&comm, me.size, id, me.rank) != ncclSuccess) {
      std::fprintf(stderr, "%s\n", ncclGetLastError(nullptr));
      return 1;
    }
    const DeviceStream stream(0);
    DeviceBuffer<float> buffer(0, values(me.rank, kCount));
    if (ncclAllReduce(buffer.span().data(), buffer.span().data(), kCount, ncclFloat32, ncclSum,
                      comm, stream.get()) != ncclSuccess) {
      return 2;
    }
    detail::gpu::api::wait_for(stream.get());
    if (buffer.read() != sums(me.size, kCount)) return 3;
    return ncclCommDestroy(comm) == ncclSuccess ? 0 : 4;
  });
  if (codes[0] == 77) GTEST_SKIP() << "no CUDA device";
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

// Ranks whose messages need both sides at once, and random groups of messages: no order of the
// calls may leave ranks that wait for each other in a circle.
TEST(NcclGroups, CallsOfAnyMessagesEnd) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 2000; ++trial) {
    const int size = 1 + static_cast<int>(random() % 6);
    std::vector<std::vector<nccl_programs::Message>> messages(static_cast<std::size_t>(size));
    for (unsigned i = 0; i < random() % 30; ++i) {
      const int from = static_cast<int>(random() % static_cast<unsigned>(size));
      const int to = static_cast<int>(random() % static_cast<unsigned>(size));
      messages[static_cast<std::size_t>(from)].push_back({true, to, nullptr, i + 1, nullptr});
      messages[static_cast<std::size_t>(to)].push_back({false, from, nullptr, i + 1, nullptr});
    }
    // Of each rank the calls that are left; and of the first, which side is done.
    struct Left {
      std::deque<Call> calls;
      bool sent = false;
      bool received = false;
    };
    std::vector<Left> left(messages.size());
    for (int rank = 0; rank < size; ++rank) {
      const auto calls =
          nccl_programs::calls_for(messages[static_cast<std::size_t>(rank)], rank, size);
      for (const nccl_programs::CallInTurn& one : calls) {
        left[static_cast<std::size_t>(rank)].calls.push_back(one.call);
      }
    }
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (int rank = 0; rank < size; ++rank) {
        Left& mine = left[static_cast<std::size_t>(rank)];
        if (mine.calls.empty()) continue;
        const Call& call = mine.calls.front();
        if (call.to != kNoRank && !mine.sent) {
          Left& theirs = left[static_cast<std::size_t>(call.to)];
          if (!theirs.calls.empty() && theirs.calls.front().from == rank && !theirs.received) {
            const Call& other = theirs.calls.front();
            EXPECT_EQ(call.count,
                      other.collective == Collective::recv ? other.count : other.received);
            mine.sent = theirs.received = goes_on = true;
          }
        }
        if ((call.to == kNoRank || mine.sent) && (call.from == kNoRank || mine.received)) {
          mine.calls.pop_front();
          mine.sent = mine.received = false;
          goes_on = true;
        }
      }
    }
    for (const Left& one : left) ASSERT_TRUE(one.calls.empty()) << trial;
  }
}

}  // namespace
}  // namespace rondo::test

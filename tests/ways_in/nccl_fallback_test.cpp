// What Rondo lacks is made by the library that RONDO_NCCL_FALLBACK names; here by real_nccl.cpp.
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/nccl/functions.hpp"
#include "tests/cuda/device_buffer.hpp"

namespace rondo::test {
namespace {

TEST(NcclFallback, MakesWhatRondoLacks) {
  std::vector<ncclComm_t> comms(3);
  ASSERT_EQ(ncclCommInitAll(comms.data(), 3, spread(3).data()), ncclSuccess)
      << ncclGetLastError(nullptr);
  std::vector<ncclRedOp_t> ops(3);
  std::vector<std::vector<float>> marks(3, std::vector<float>(3));
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ncclRedOpCreatePreMulSum(&ops[rank], nullptr, ncclFloat32, 0, comms[rank]),
              ncclSuccess);
    EXPECT_EQ(
        ncclAllReduce(nullptr, marks[rank].data(), 3, ncclFloat32, ops[rank], comms[rank], nullptr),
        ncclSuccess);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(marks[rank], (std::vector<float>{100.0F + static_cast<float>(rank), 3, 1}));
  }
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, ncclFloat8e5m2, ncclSum, comms[0], nullptr),
            ncclInvalidUsage);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("the other library's text"),
            std::string::npos);
  EXPECT_EQ(ncclSignal(0, 0, 0, 0, comms[0], nullptr), ncclInvalidUsage);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("neither Rondo nor the library"),
            std::string::npos);
  // What Rondo has, it makes itself.
  std::deque<DeviceBuffer<float>> buffers;
  std::deque<DeviceStream> streams;
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    streams.emplace_back(spread(3)[rank]);
    float* const data =
        buffers.emplace_back(spread(3)[rank], std::vector<float>{1, 2, 3}).span().data();
    EXPECT_EQ(ncclAllReduce(data, data, 3, ncclFloat32, ncclSum, comms[rank], streams[rank].get()),
              ncclSuccess);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    detail::gpu::api::wait_for(streams[rank].get());
    EXPECT_EQ(buffers[rank].read(), (std::vector<float>{3, 6, 9}));
  }
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

}  // namespace
}  // namespace rondo::test

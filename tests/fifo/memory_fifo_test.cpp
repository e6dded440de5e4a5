// The FIFO contract for memory of one process and for shared memory; and the FIFO between threads.

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "memory/shared_memory.hpp"
#include "tests/fifo/fifo_contract.hpp"

namespace rondo::detail {
namespace {

constexpr FifoGeometry kGeometry{1024, 4};

class PrivateMemory {
 public:
  [[nodiscard]] static FifoGeometry geometry() { return kGeometry; }
  [[nodiscard]] static std::uint64_t capacity() { return kGeometry.slots; }
  SendEnd& send_end() { return send_; }
  RecvEnd& recv_end() { return recv_; }
  void drive() {}

 private:
  Mapping memory_ = map_private(contiguous_fifo_bytes(kGeometry));
  SendEnd send_{contiguous_fifo(memory_.data(), kGeometry)};
  RecvEnd recv_{contiguous_fifo(memory_.data(), kGeometry)};
};

// The two ends see the object at two addresses, as two processes do.
class SharedMemory {
 public:
  SharedMemory() {
    SharedObject created =
        create_shared(contiguous_fifo_bytes(kGeometry), contiguous_fifo_bytes(kGeometry));
    theirs_ = map_shared(created.file, contiguous_fifo_bytes(kGeometry));
    mine_ = std::move(created.mapping);
    send_ = SendEnd(contiguous_fifo(mine_.data(), kGeometry));
    recv_ = RecvEnd(contiguous_fifo(theirs_.data(), kGeometry));
  }
  [[nodiscard]] static FifoGeometry geometry() { return kGeometry; }
  [[nodiscard]] static std::uint64_t capacity() { return kGeometry.slots; }
  SendEnd& send_end() { return send_; }
  RecvEnd& recv_end() { return recv_; }
  void drive() {}

 private:
  Mapping mine_;
  Mapping theirs_;
  SendEnd send_;
  RecvEnd recv_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(PrivateMemory, FifoContract, PrivateMemory);
INSTANTIATE_TYPED_TEST_SUITE_P(SharedMemory, FifoContract, SharedMemory);

// Its parts: two counters, and slots with headers of 64 bytes, padded to a multiple of 128 bytes.
TEST(Fifo, TakesNoMoreMemoryThanItsParts) {
  EXPECT_EQ(contiguous_fifo_bytes({64, 2}), 2 * kCounterSpacing + 256);
  EXPECT_EQ(contiguous_fifo_bytes({128, 3}), 2 * kCounterSpacing + 640);
}

TEST(Fifo, AProducerAndAConsumerThreadAgreeOnEveryByte) {
  constexpr FifoGeometry kSmall{64, 2};
  constexpr std::uint64_t kSlices = 20000;
  const Mapping memory = map_private(contiguous_fifo_bytes(kSmall));
  std::thread producer([&] {
    SendEnd end(contiguous_fifo(memory.data(), kSmall));
    for (std::uint64_t number = 0; number < kSlices; ++number) {
      while (!end.can_acquire()) std::this_thread::yield();
      end.slot()->bytes = number;
      std::memset(payload(end.slot()), static_cast<int>(number & 0xFFU), 64);
      end.publish();
    }
  });
  RecvEnd end(contiguous_fifo(memory.data(), kSmall));
  std::uint64_t wrong = 0;
  for (std::uint64_t number = 0; number < kSlices; ++number) {
    while (!end.can_peek()) std::this_thread::yield();
    if (end.slot()->bytes != number) ++wrong;
    for (int i = 0; i < 64; ++i) {
      if (payload(end.slot())[i] != static_cast<std::byte>(number & 0xFFU)) ++wrong;
    }
    end.release();
  }
  producer.join();
  EXPECT_EQ(wrong, 0U);
}

TEST(SharedMemory, OfAnotherSizeOrThatCanShrinkIsRefused) {
  const SharedObject object = create_shared(8192, 8192);
  EXPECT_EQ(map_shared(object.file, 8192).bytes(), 8192U);
  EXPECT_THROW(map_shared(object.file, 1U << 20U), TransportError);  // reading it would be SIGBUS
  EXPECT_NE(::ftruncate(object.file.get(), 4096), 0);
  const FileDescriptor unsealed(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), 8192), 0);
  EXPECT_THROW(map_shared(unsealed, 8192), TransportError);
}

TEST(SharedMemory, TooLittleRoomIsAnErrorWithTheCure) {
  try {
    constexpr std::size_t kTooMuch = std::size_t{1} << 50U;
    static_cast<void>(create_shared(kTooMuch, kTooMuch));
    FAIL() << "a petabyte of shared memory";
  } catch (const TransportError& error) {
    EXPECT_NE(std::string_view(error.what()).find("docker run --memory"), std::string_view::npos)
        << error.what();
  }
}

TEST(SharedMemory, WithoutADescriptorLeftSaysSo) {
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{0, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::string text;
  try {
    static_cast<void>(create_shared(8192, 8192));
  } catch (const TransportError& error) {
    text = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_NE(text.find("memfd_create"), std::string::npos) << text;
  EXPECT_NE(text.find("ulimit -n"), std::string::npos) << text;
}

}  // namespace
}  // namespace rondo::detail

// The FIFO contract for memory of one process and for shared memory; and the FIFO between threads.

#include <sys/stat.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "carrier/memory.hpp"
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
    NamedMapping created = create_shared(contiguous_fifo_bytes(kGeometry));
    mine_ = std::move(created.mapping);
    theirs_ = open_shared(created.name.text(), contiguous_fifo_bytes(kGeometry));
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

TEST(SharedMemory, NamesAreUnpredictableAndGoWithTheirOwner) {
  std::string text;
  {
    const NamedMapping a = create_shared(4096);
    const NamedMapping b = create_shared(4096);
    text = a.name.text();
    EXPECT_NE(text, b.name.text());
    EXPECT_EQ(text.size(), std::string_view("/rondo-").size() + 32);
    struct stat facts {};
    ASSERT_EQ(::stat(("/dev/shm" + text).c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0600U);
    EXPECT_EQ(open_shared(text, 4096).bytes(), 4096U);
  }
  EXPECT_THROW(open_shared(text, 4096), TransportError);
}

TEST(SharedMemory, TooLittleRoomIsAnErrorWithTheCure) {
  try {
    static_cast<void>(create_shared(std::size_t{1} << 50U));
    FAIL() << "a petabyte of shared memory";
  } catch (const TransportError& error) {
    EXPECT_NE(std::string_view(error.what()).find("--shm-size"), std::string_view::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace rondo::detail

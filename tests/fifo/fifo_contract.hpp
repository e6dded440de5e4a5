// What every carrier's FIFO promises. A carrier's test defines a fixture with
//   FifoGeometry geometry()        of the FIFO under test
//   SendEnd& send_end(), RecvEnd& recv_end()
//   void drive()                   lets a carrier that needs it do some work
//   std::uint64_t capacity()       most slots that may be published before any is released
// and instantiates this suite for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "fifo/fifo.hpp"

namespace rondo::detail {

template <class Carrier>
class FifoContract : public ::testing::Test {
 protected:
  // A slot whose payload depends on its number in every byte.
  static std::vector<std::byte> pattern(std::uint64_t number, std::uint64_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i) {
      data[i] = static_cast<std::byte>((number * 131 + i * 7 + (i >> 8U)) & 0xFFU);
    }
    return data;
  }

  [[nodiscard]] std::uint64_t bytes_of(std::uint64_t number) {
    const std::uint64_t most = carrier_.geometry().slot_bytes;
    return number % 3 == 0 ? most : number * 37 % (most + 1);
  }

  bool try_send(std::uint64_t number) {
    SendEnd& end = carrier_.send_end();
    if (!end.can_acquire()) return false;
    const std::vector<std::byte> data = pattern(number, bytes_of(number));
    end.slot()->signature.sequence = number;
    end.slot()->bytes = data.size();
    std::memcpy(payload(end.slot()), data.data(), data.size());
    end.publish();
    return true;
  }

  bool try_receive(std::uint64_t number) {
    RecvEnd& end = carrier_.recv_end();
    if (!end.can_peek()) return false;
    EXPECT_EQ(end.slot()->signature.sequence, number);
    const std::vector<std::byte> expected = pattern(number, bytes_of(number));
    EXPECT_EQ(end.slot()->bytes, expected.size());
    EXPECT_EQ(std::memcmp(payload(end.slot()), expected.data(), expected.size()), 0);
    end.release();
    return true;
  }

  // Drive the carrier until the slot is sent or received.
  void send(std::uint64_t number) {
    while (!try_send(number)) carrier_.drive();
  }
  void receive(std::uint64_t number) {
    while (!try_receive(number)) carrier_.drive();
  }

  Carrier carrier_;
};

TYPED_TEST_SUITE_P(FifoContract);

TYPED_TEST_P(FifoContract, StartsEmptyAndFree) {
  EXPECT_FALSE(this->carrier_.recv_end().can_peek());
  EXPECT_TRUE(this->carrier_.send_end().can_acquire());
}

TYPED_TEST_P(FifoContract, KeepsOrderSizesAndBytes) {
  for (std::uint64_t number = 0; number < 5 * this->carrier_.geometry().slots; ++number) {
    this->send(number);
    this->receive(number);
  }
  EXPECT_FALSE(this->carrier_.recv_end().can_peek());
}

TYPED_TEST_P(FifoContract, IsBounded) {
  std::uint64_t sent = 0;
  // Far more attempts than slots: nothing may be accepted beyond the capacity.
  for (int attempt = 0; attempt < 2000; ++attempt) {
    if (this->try_send(sent)) ++sent;
    this->carrier_.drive();
  }
  EXPECT_GE(sent, this->carrier_.geometry().slots);
  EXPECT_LE(sent, this->carrier_.capacity());
  for (std::uint64_t number = 0; number < sent; ++number) this->receive(number);
  EXPECT_FALSE(this->carrier_.recv_end().can_peek());
}

// The schedule is free of deadlocks only if every FIFO keeps this promise.
TYPED_TEST_P(FifoContract, ASlotIsFreeWheneverFewerThanAllAreUnreleased) {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (int round = 0; round < 100; ++round) {
    for (int attempt = 0; attempt < 50; ++attempt) {
      if (this->try_send(sent)) ++sent;
      this->carrier_.drive();
    }
    while (sent - received >= this->carrier_.geometry().slots) this->receive(received++);
    this->send(sent++);
  }
  while (received < sent) this->receive(received++);
  EXPECT_FALSE(this->carrier_.recv_end().can_peek());
}

TYPED_TEST_P(FifoContract, SeveralSlotsMayBeHeldAtOnce) {
  const std::uint64_t slots = this->carrier_.geometry().slots;
  for (std::uint64_t number = 0; number < slots; ++number) this->send(number);
  RecvEnd& end = this->carrier_.recv_end();
  while (end.published_slots() < slots) this->carrier_.drive();
  for (std::uint64_t ahead = 0; ahead < slots; ++ahead) {
    EXPECT_EQ(end.slot(ahead)->signature.sequence, ahead);
  }
  for (std::uint64_t number = 0; number < slots; ++number) this->receive(number);
}

REGISTER_TYPED_TEST_SUITE_P(FifoContract, StartsEmptyAndFree, KeepsOrderSizesAndBytes, IsBounded,
                            ASlotIsFreeWheneverFewerThanAllAreUnreleased,
                            SeveralSlotsMayBeHeldAtOnce);

}  // namespace rondo::detail

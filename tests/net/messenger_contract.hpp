// What every messenger promises. A network's test defines a type with
//   std::unique_ptr<Messenger> messenger()   whose only rank, 0, is this process
// and instantiates this suite for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "net/messenger.hpp"

namespace rondo::detail {

template <class Network>
class MessengerContract : public ::testing::Test {
 protected:
  static constexpr int kTag = 5;
  static constexpr int kOtherTag = 6;

  // Each byte depends on the message's number.
  static std::vector<std::uint8_t> message(std::size_t number) {
    std::vector<std::uint8_t> bytes(number * 37 % 3000 + 1);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(number * 131 + i * 7 + (i >> 8U));
    }
    return bytes;
  }
  Operation send(const std::vector<std::uint8_t>& bytes, int tag = kTag,
                 Messenger::Delivery delivery = Messenger::Delivery::sent) {
    return messenger_->send(0, tag, bytes.data(), bytes.size(), delivery);
  }
  // Whether it ends in so much time as any message needs.
  static bool ends(Messenger& messenger, Operation& operation) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!messenger.has_ended(operation, "testing", kAnyPeer)) {
      if (std::chrono::steady_clock::now() > give_up) return false;
    }
    return true;
  }
  bool ends(Operation& operation) { return ends(*messenger_, operation); }
  // Looks at the network as often as a message that is under way needs by far.
  bool ends_soon(Operation& operation) {
    bool ended = false;
    for (int look = 0; look < 10'000 && !ended; ++look) {
      ended = messenger_->has_ended(operation, "testing", kAnyPeer);
    }
    return ended;
  }
  // Receives the next message from `peer` with that tag, into more room than it needs.
  std::vector<std::uint8_t> receive(std::size_t bytes, int tag = kTag, int peer = 0) {
    std::vector<std::uint8_t> room(bytes + 100);
    Operation operation = messenger_->receive(peer, tag, room.data(), room.size());
    EXPECT_TRUE(ends(operation));
    room.resize(bytes);
    return room;
  }

  Network network_;
  std::unique_ptr<Messenger> messenger_ = network_.messenger();
};

TYPED_TEST_SUITE_P(MessengerContract);

TYPED_TEST_P(MessengerContract, KeepsTheOrderOfOneTag) {
  constexpr std::size_t kMessages = 20;
  std::vector<std::vector<std::uint8_t>> messages;
  std::vector<Operation> sends;
  for (std::size_t number = 0; number < 2 * kMessages; ++number) {
    messages.push_back(this->message(number));
  }
  for (std::size_t number = 0; number < 2 * kMessages; ++number) {
    sends.push_back(this->send(messages[number], number % 2 == 0 ? this->kTag : this->kOtherTag));
  }
  for (const std::size_t first : {1U, 0U}) {
    for (std::size_t number = first; number < 2 * kMessages; number += 2) {
      const int tag = first == 0 ? this->kTag : this->kOtherTag;
      ASSERT_EQ(this->receive(messages[number].size(), tag), messages[number]) << number;
    }
  }
  for (Operation& send : sends) EXPECT_TRUE(this->ends(send));
}

TYPED_TEST_P(MessengerContract, ReceivesFromAnyPeer) {
  const std::vector<std::uint8_t> bytes = this->message(7);
  Operation send = this->send(bytes);
  EXPECT_EQ(this->receive(bytes.size(), this->kTag, kAnyPeer), bytes);
  EXPECT_TRUE(this->ends(send));
}

TYPED_TEST_P(MessengerContract, ASendThatIsToBeTakenEndsOnlyThen) {
  const std::vector<std::uint8_t> bytes = this->message(3);
  Operation send = this->send(bytes, this->kTag, Messenger::Delivery::taken);
  EXPECT_FALSE(this->ends_soon(send));
  EXPECT_EQ(this->receive(bytes.size()), bytes);
  EXPECT_TRUE(this->ends(send));
}

TYPED_TEST_P(MessengerContract, ACancelledReceiveEnds) {
  std::vector<std::uint8_t> room(100);
  Operation receive = this->messenger_->receive(0, this->kTag, room.data(), room.size());
  EXPECT_FALSE(this->ends_soon(receive));
  this->messenger_->cancel(receive);
  EXPECT_TRUE(this->ends(receive));
  EXPECT_TRUE(this->messenger_->has_ended(receive, "testing", 0)) << "it is not under way";
}

TYPED_TEST_P(MessengerContract, SaysWhichOfSeveralHaveEnded) {
  std::vector<std::uint8_t> rooms[3] = {};
  std::vector<Operation> receives;
  for (int i = 0; i < 3; ++i) {
    rooms[i].resize(4000);
    receives.push_back(
        this->messenger_->receive(0, this->kTag + i, rooms[i].data(), rooms[i].size()));
  }
  const std::vector<std::uint8_t> bytes = this->message(9);
  Operation send = this->send(bytes, this->kTag + 1);
  std::vector<Pending> pending;
  for (Operation& receive : receives) pending.push_back({&receive, "testing", 0});
  std::vector<std::size_t> ended;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (ended.empty() && std::chrono::steady_clock::now() < give_up) {
    this->messenger_->look(pending, ended);
  }
  EXPECT_EQ(ended, std::vector<std::size_t>{1});
  rooms[1].resize(bytes.size());
  EXPECT_EQ(rooms[1], bytes);
  EXPECT_TRUE(this->ends(send));
  for (Operation& receive : receives) {
    if (receive.under_way) this->messenger_->cancel(receive);
    EXPECT_TRUE(this->ends(receive));
  }
}

TYPED_TEST_P(MessengerContract, MessagesOfAnotherDoNotMeet) {
  const std::unique_ptr<Messenger> another = this->messenger_->another(std::uint64_t{77} << 32U);
  const std::vector<std::uint8_t> first = this->message(11);
  const std::vector<std::uint8_t> second = this->message(12);
  std::vector<std::uint8_t> room(second.size());
  Operation receive = another->receive(0, this->kTag, room.data(), room.size());
  Operation sends[] = {this->send(first), another->send(0, this->kTag, second.data(), second.size(),
                                                        Messenger::Delivery::sent)};
  EXPECT_TRUE(this->ends(*another, receive));
  EXPECT_EQ(room, second);
  EXPECT_EQ(this->receive(first.size()), first);
  EXPECT_TRUE(this->ends(sends[0]));
  EXPECT_TRUE(this->ends(*another, sends[1]));
}

REGISTER_TYPED_TEST_SUITE_P(MessengerContract, KeepsTheOrderOfOneTag, ReceivesFromAnyPeer,
                            ASendThatIsToBeTakenEndsOnlyThen, ACancelledReceiveEnds,
                            SaysWhichOfSeveralHaveEnded, MessagesOfAnotherDoNotMeet);

}  // namespace rondo::detail

// What a rank learns of a failure on another host, by messages of which the test decides.

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "net/pump.hpp"

#include "tests/support/forked.hpp"
#include "tests/support/quiet_messenger.hpp"

namespace rondo::detail {
namespace {

struct Network {
  bool cut = false;    // sending throws
  std::string reason;  // that rank 1 has told of the cut; empty: none
  int until_told = 0;  // looks at the network until the reason comes
  int receives = 3;    // that can be started; the next one throws
  bool left = false;   // whether rank 1 has destroyed its messenger
  bool destroyed = false;
};

class CutMessenger final : public test::QuietMessenger {
 public:
  explicit CutMessenger(Network& network) : network_(network) {}
  ~CutMessenger() override { network_.destroyed = true; }

  [[nodiscard]] int rank() const override { return 0; }
  Operation send(int peer, int /*tag*/, const void* /*data*/, std::size_t /*bytes*/,
                 Delivery /*delivery*/) override {
    if (network_.cut) throw TransportError("rank " + std::to_string(peer) + " is lost");
    return {};  // has ended
  }
  // Keeps the memory of an abort message, the largest that is received here.
  Operation receive(int /*peer*/, int /*tag*/, void* data, std::size_t bytes) override {
    if (network_.receives-- == 0) throw TransportError("no more requests");
    return {bytes == sizeof(AbortMessage) ? data : nullptr, true};
  }
  void look(std::span<const Pending> pending, std::vector<std::size_t>& ended) override {
    ended.clear();
    if (!network_.reason.empty() && network_.until_told-- > 0) return;
    for (std::size_t i = 0; i < pending.size(); ++i) {
      Operation& operation = *pending[i].operation;
      if (operation.handle == nullptr || network_.reason.empty()) continue;
      auto* abort = static_cast<AbortMessage*>(operation.handle);
      abort->rank = 1;
      network_.reason.copy(abort->text.data(), abort->text.size() - 1);
      operation.under_way = false;
      ended.push_back(i);
    }
  }
  [[nodiscard]] bool has_left(int /*peer*/) override { return network_.left; }

 private:
  Network& network_;
};

class NoticesOfALostRank : public ::testing::Test {
 protected:
  NoticesOfALostRank() {
    PumpEdges edges;
    edges.ranks_elsewhere = {1};
    edges.board = &board_;
    pump_ = std::make_unique<Pump>(std::make_unique<CutMessenger>(network_), std::move(edges));
  }
  // As if nothing had failed, since the pump of a failed communicator leaves its memory behind.
  ~NoticesOfALostRank() override {
    board_ = {};
    network_ = {};
  }

  Network network_;
  AbortBoard board_;
  std::unique_ptr<Pump> pump_;
};

TEST_F(NoticesOfALostRank, TakesTheReasonForTheLostConnection) {
  network_.cut = true;
  network_.reason = "rank 1 has lost rank 2";
  pump_->notices().tell_call(1, Signature());
  ASSERT_TRUE(board_.raised());
  EXPECT_EQ(board_.read().text, "rank 1 has lost rank 2");
  EXPECT_EQ(board_.read().rank, 1);
}

TEST_F(NoticesOfALostRank, TakesTheReasonWhereItConfirmsACall) {
  network_.cut = true;
  network_.reason = "rank 1 has lost rank 3";
  pump_->notices().tell_confirmed(5);
  ASSERT_TRUE(board_.raised());
  EXPECT_EQ(board_.read().text, "rank 1 has lost rank 3");
}

// A rank that has failed because of another leaves before that one has told all others.
TEST_F(NoticesOfALostRank, TakesTheReasonForTheRankThatHasLeft) {
  network_.left = true;
  network_.reason = "rank 1: the host of rank 2 does not answer";
  network_.until_told = 1000;
  EXPECT_FALSE(pump_->has_left(1));
  ASSERT_TRUE(board_.raised());
  EXPECT_EQ(board_.read().text, network_.reason);
}

TEST_F(NoticesOfALostRank, HasLeftIfNobodyTellsWhy) {
  EXPECT_FALSE(pump_->has_left(1));
  network_.left = true;
  EXPECT_TRUE(pump_->has_left(1));
  EXPECT_FALSE(board_.raised());
}

TEST_F(NoticesOfALostRank, NamesTheLostRankIfNobodyTellsWhy) {
  network_.cut = true;
  EXPECT_THROW(pump_->notices().tell_call(1, Signature()), TransportError);
  EXPECT_THROW(pump_->notices().tell_confirmed(5), TransportError);
  EXPECT_FALSE(board_.raised());
}

// The first receive is under way when the second cannot be started. In a process of its own, since
// the messenger and the memory stay for good.
TEST(Pump, LeavesTheMessengerItsMemoryIfItCannotReceive) {
  const std::vector<int> codes = test::run_forked(1, [](const test::ForkedRank& /*me*/) {
    Network network;
    network.receives = 1;
    AbortBoard board;
    PumpEdges edges;
    edges.ranks_elsewhere = {1};
    edges.board = &board;
    try {
      const Pump pump(std::make_unique<CutMessenger>(network), std::move(edges));
    } catch (const TransportError&) {
      return network.destroyed ? 2 : 0;
    }
    return 3;
  });
  EXPECT_EQ(codes, std::vector<int>{0});
}

}  // namespace
}  // namespace rondo::detail

// What the ranks of a host are told when the pump of one of them fails.

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "engine/engine.hpp"
#include "joining/wire.hpp"

namespace rondo::detail {
namespace {

class BrokenPump final : public Pump {
 public:
  void begin_call(Algorithm) override {}
  void drive_all() override {}
  bool progress() override { throw TransportError("the network is gone"); }
  void look_for_abort() override {}
  std::unique_ptr<Pump> another(PumpEdges) override { return nullptr; }
  std::optional<int> busy_peer() override { return std::nullopt; }
  void tell_call(int, const Signature&) override {}
  [[nodiscard]] const std::vector<std::optional<Signature>>& told_calls() const override {
    return told_;
  }
  void open_connections() override {}
  void tell_confirmed(std::uint64_t) override {}
  void expect_confirmation(int, std::uint64_t) override {}
  void hear_confirmations() override {}
  [[nodiscard]] bool has_confirmed(int, std::uint64_t) const override { return true; }
  void announce_abort(const AbortRecord& record) noexcept override {
    EXPECT_NE(record.text.find("the network is gone"), std::string::npos) << record.text;
  }
  [[nodiscard]] bool can_be_driven() const override { return true; }
  [[nodiscard]] std::string objection_to_this_thread() const override { return {}; }
  [[nodiscard]] std::string objection_to_progress_thread() const override { return {}; }

 private:
  std::vector<std::optional<Signature>> told_;
};

class EngineTest : public testing::TestWithParam<Algorithm> {};

TEST_P(EngineTest, TellsWhyItsPumpFailed) {
  std::vector<Wiring> group = wire_local_group(2, {});
  const SegmentPlan plan{2, 0, {}, 2, 256};
  const auto segment = std::make_shared<HostSegment>(map_private(plan.bytes()), plan);
  if (GetParam() == Algorithm::hierarchical) group[0].links.segment = segment;
  group[0].links.pump = std::make_unique<BrokenPump>();
  const auto in_which = group[0].links.segment;
  Engine engine(std::move(group[0]));
  std::vector<float> data(100);
  const Call call{.collective = Collective::all_reduce,
                  .in = data.data(),
                  .out = data.data(),
                  .count = data.size()};
  EXPECT_THROW(engine.run(call, {GetParam(), GetParam()}, std::chrono::minutes(5)), TransportError);
  ASSERT_TRUE(in_which->board().raised());
  const AbortRecord record = in_which->board().read();
  EXPECT_EQ(record.rank, 0);
  EXPECT_NE(record.text.find("the network is gone"), std::string::npos) << record.text;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EngineTest,
                         testing::Values(Algorithm::ring, Algorithm::direct,
                                         Algorithm::hierarchical),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace rondo::detail

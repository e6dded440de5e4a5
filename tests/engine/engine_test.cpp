// What the ranks of a host are told when the pump of one of them fails.

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "engine/engine.hpp"
#include "joining/wire.hpp"
#include "plan/call_signature.hpp"
#include "tests/support/cut_messenger.hpp"

namespace rondo::detail {
namespace {

class EngineTest : public testing::TestWithParam<Algorithm> {};

TEST_P(EngineTest, TellsWhyItsPumpFailed) {
  std::vector<Wiring> group = wire_local_group(2, {});
  const SegmentPlan plan{2, 0, {}, 2, 256};
  const auto segment = std::make_shared<HostSegment>(map_private(plan.bytes()), plan);
  if (GetParam() == Algorithm::hierarchical) group[0].links.segment = segment;
  const auto in_which = group[0].links.segment;
  const auto cable = std::make_shared<test::Cable>();
  PumpEdges edges;
  edges.board = &in_which->board();
  group[0].links.pump =
      std::make_unique<Pump>(std::make_unique<test::CutMessenger>(cable), std::move(edges));
  Engine engine(group[0]);
  std::vector<float> data(100);
  PlannedCall planned;
  planned.call = {.collective = Collective::all_reduce,
                  .in = data.data(),
                  .out = data.data(),
                  .count = data.size()};
  planned.signature = signature_of(planned.call, GetParam(), 2);
  planned.algorithm = planned.fallback = GetParam();
  planned.timeout = std::chrono::minutes(5);
  EXPECT_THROW(engine.run(planned), TransportError);
  ASSERT_TRUE(in_which->board().raised());
  const AbortRecord record = in_which->board().read();
  EXPECT_EQ(record.rank, 0);
  EXPECT_NE(record.text.find("the cable is cut"), std::string::npos) << record.text;
  // As if nothing had failed, since the pump of a failed communicator leaves its memory behind.
  cable->cut = false;
  in_which->board() = {};
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EngineTest,
                         testing::Values(Algorithm::ring, Algorithm::direct,
                                         Algorithm::hierarchical),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace rondo::detail

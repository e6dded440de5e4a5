// A pump to which the network is gone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "carrier/pump.hpp"

namespace rondo::test {

// Stands for a network that fails during a call.
class CutCable final : public detail::Pump {
 public:
  explicit CutCable(detail::PumpEdges edges) : edges_(std::move(edges)) {}
  void begin_call(Algorithm /*algorithm*/) override {}
  void drive_all() override {}
  bool progress() override { throw TransportError("the cable is cut"); }
  void look_for_abort() override { throw TransportError("nobody answers"); }
  void carry(const detail::PumpEdges::Out& /*edge*/, detail::Mapping /*fifo*/) override {}
  void carry(const detail::PumpEdges::In& /*edge*/, detail::Mapping /*fifo*/) override {}
  std::unique_ptr<Pump> another(detail::PumpEdges /*edges*/) override { return nullptr; }
  std::unique_ptr<Pump> among(const std::vector<int>& /*ranks*/,
                              detail::PumpEdges /*edges*/) override {
    return nullptr;
  }
  std::optional<int> busy_peer() override { return std::nullopt; }
  void tell_call(int /*peer*/, const detail::Signature& /*call*/) override {}
  [[nodiscard]] const std::vector<std::optional<detail::Signature>>& told_calls() const override {
    return told_;
  }
  [[nodiscard]] bool has_left(int /*peer*/) override { return false; }
  void open_connections() override {}
  void tell_confirmed(std::uint64_t /*sequence*/) override {}
  void expect_confirmation(int /*rank*/, std::uint64_t /*sequence*/) override {}
  void hear_confirmations() override {}
  [[nodiscard]] bool has_confirmed(int /*rank*/, std::uint64_t /*sequence*/) const override {
    return true;
  }
  void announce_abort(const detail::AbortRecord& record) noexcept override {
    EXPECT_NE(record.text.find("the cable is cut"), std::string::npos) << record.text;
  }
  [[nodiscard]] bool can_be_driven() const override { return true; }
  [[nodiscard]] std::string objection_to_this_thread() const override { return {}; }
  [[nodiscard]] std::string objection_to_progress_thread() const override { return {}; }

 private:
  detail::PumpEdges edges_;
  std::vector<std::optional<detail::Signature>> told_;
};

}  // namespace rondo::test

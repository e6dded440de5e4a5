// A messenger to which the network is gone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "net/notices.hpp"

namespace rondo::test {

struct Cable {
  bool cut = true;
};

// Stands for a network that fails during a call. Where the cable is not cut, nothing comes, and
// nothing is under way.
class CutMessenger final : public detail::Messenger {
 public:
  explicit CutMessenger(std::shared_ptr<const Cable> cable, int rank = 0)
      : cable_(std::move(cable)), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return 2; }
  detail::Operation send(int /*peer*/, int /*tag*/, const void* data, std::size_t bytes,
                         Delivery /*delivery*/) override {
    if (bytes == sizeof(detail::AbortMessage)) {
      const std::string text = static_cast<const detail::AbortMessage*>(data)->text.data();
      EXPECT_NE(text.find("the cable is cut"), std::string::npos) << text;
      throw TransportError("nobody answers");
    }
    throw_if_cut();
    return {};
  }
  detail::Operation receive(int /*peer*/, int /*tag*/, void* /*data*/,
                            std::size_t /*bytes*/) override {
    return {nullptr, true};
  }
  void look(std::span<const detail::Pending> /*pending*/,
            std::vector<std::size_t>& ended) override {
    ended.clear();
    throw_if_cut();
  }
  void cancel(detail::Operation& operation) override { operation.under_way = false; }
  void connect(const std::vector<int>& /*ranks*/) override {}
  std::unique_ptr<Messenger> another(std::uint64_t /*session*/) override { return nullptr; }
  std::unique_ptr<Messenger> among(const std::vector<int>& /*ranks*/,
                                   std::uint64_t /*session*/) override {
    return nullptr;
  }
  [[nodiscard]] bool can_be_used() const override { return true; }
  [[nodiscard]] std::string objection_to_this_thread() const override { return {}; }
  [[nodiscard]] std::string objection_to_progress_thread() const override { return {}; }

 private:
  void throw_if_cut() const {
    if (cable_->cut) throw TransportError("the cable is cut");
  }

  std::shared_ptr<const Cable> cable_;
  int rank_;
};

}  // namespace rondo::test

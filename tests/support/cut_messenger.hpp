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

#include "tests/support/quiet_messenger.hpp"

namespace rondo::test {

struct Cable {
  bool cut = true;
};

// Stands for a network that fails during a call. Where the cable is not cut, nothing comes, and
// nothing is under way.
class CutMessenger final : public QuietMessenger {
 public:
  explicit CutMessenger(std::shared_ptr<const Cable> cable, int rank = 0)
      : cable_(std::move(cable)), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
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

 private:
  void throw_if_cut() const {
    if (cable_->cut) throw TransportError("the cable is cut");
  }

  std::shared_ptr<const Cable> cable_;
  int rank_;
};

}  // namespace rondo::test

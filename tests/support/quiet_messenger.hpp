// What messengers that tests make up have in common: two ranks, any thread may use them, and an
// operation that is cancelled has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/messenger.hpp"

namespace rondo::test {

class QuietMessenger : public detail::Messenger {
 public:
  [[nodiscard]] int size() const override { return 2; }
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
};

}  // namespace rondo::test

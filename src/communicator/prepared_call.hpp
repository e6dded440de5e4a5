// A planned call that owns all that its caller may free before it is made.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <rondo/user_reduction.hpp>

#include "communicator/state.hpp"
#include "plan/plan_call.hpp"

namespace rondo::detail {

// Counts and the reduction of a call, copied.
class CallArguments {
 public:
  CallArguments(const Call& call, int ranks) {
    if (call.counts != nullptr) counts_.assign(call.counts, call.counts + ranks);
    if (call.received_counts != nullptr) {
      received_counts_.assign(call.received_counts, call.received_counts + ranks);
    }
    if (call.reduction != nullptr) reduction_ = *call.reduction;
  }
  // Makes `call` point to these, in place of the caller's.
  void lend_to(Call& call) const {
    if (call.counts != nullptr) call.counts = counts_.data();
    if (call.received_counts != nullptr) call.received_counts = received_counts_.data();
    if (call.reduction != nullptr) call.reduction = &*reduction_;
  }

 private:
  std::vector<std::size_t> counts_;
  std::vector<std::size_t> received_counts_;
  std::optional<UserReduction> reduction_;
};

// `user`: who makes the calls, as in Communicator.
struct PreparedCall {
  std::shared_ptr<CommunicatorState> state;
  const void* user = nullptr;
  CallArguments arguments;
  PlannedCall planned;  // points to the arguments
};

}  // namespace rondo::detail

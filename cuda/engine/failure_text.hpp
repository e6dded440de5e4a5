// The texts of kernels' failures, and mismatches that the ranks' presences show.
#pragma once

#include <optional>
#include <string>

#include "cuda/engine/device_wiring.hpp"

namespace rondo::detail::gpu {

// A rank's first failure that does not come from another rank's failure; null if there is none.
const KernelFailure* failure_of(const DeviceWiring& wiring, int rank);

std::string text_of(const DeviceWiring& wiring, int rank, const KernelFailure& failure);

// A rank of this host whose device is in a different call of the same number as this rank's: one by
// ring and one by one_shot, say, which never exchange anything. May be wrong while a call begins:
// ask twice.
struct OtherCall {
  int peer = 0;
  Signature mine;
  Signature theirs;

  friend bool operator==(const OtherCall&, const OtherCall&) = default;
};
std::optional<OtherCall> other_call_at_the_same_time(const DeviceWiring& wiring, int rank);

}  // namespace rondo::detail::gpu

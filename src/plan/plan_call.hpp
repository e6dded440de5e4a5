// From a call to all that the engine needs: its algorithm and its signature. Once for each call,
// after validate().
#pragma once

#include <chrono>

#include <rondo/call.hpp>

#include "fifo/signature.hpp"
#include "plan/algorithms.hpp"
#include "plan/tuning.hpp"

namespace rondo::detail {

// What is known of a rank's communicator when it makes a call.
struct CallPlace {
  int rank = 0;
  const Offers* offers = nullptr;
  // The communicator's, for calls that name none.
  Algorithm algorithm = Algorithm::automatic;
  std::chrono::milliseconds timeout{};
};

// On hosts, also:
struct HostCallPlace : CallPlace {
  const Tuned* tuned = nullptr;
  int hosts = 1;
  bool reaches_any = false;  // some memory of other ranks can be reached
  bool one_process = false;  // all memory of all ranks can
};

// A call as it goes to the engine.
struct PlannedCall {
  Call call;
  Signature signature;  // without the sequence number; of a collective
  // `automatic`: by `direct` if all ranks' buffers are reachable, which only the call itself finds
  // out, else by `fallback`.
  Algorithm algorithm = Algorithm::ring;
  Algorithm fallback = Algorithm::ring;
  BetweenHosts between_hosts;  // in `hierarchical`
  std::chrono::milliseconds timeout{};
};

// For a call that validate() has let pass. Throws UsageError if the algorithm that it names cannot
// carry it.
PlannedCall plan_call(const Call& call, const HostCallPlace& place);

// On devices, also:
struct DeviceCallPlace : CallPlace {
  bool shows_buffers = false;  // the other ranks reach this rank's buffers in this call
  bool reaches_any = false;    // some memory of other ranks can be reached
  bool one_device = false;     // all memory of all ranks can
};
PlannedCall plan_call(const Call& call, const DeviceCallPlace& place);

}  // namespace rondo::detail

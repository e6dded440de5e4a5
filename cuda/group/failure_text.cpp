#include "group/failure_text.hpp"

#include <fmt/format.h>

#include "engine/call_text.hpp"

namespace rondo::detail::gpu {
namespace {

std::string who_is_missing(const DeviceWiring& wiring, const Signature& signature) {
  std::string missing;
  for (const int rank : wiring.ranks_sharing) {
    if (load_relaxed(wiring.control.entered(rank).value) > signature.sequence) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  if (missing.empty()) return "All ranks of this host have begun that call.";
  return fmt::format("Ranks of this host whose device has not begun that call: {}.", missing);
}

}  // namespace

const Failure* failure_of(const DeviceWiring& wiring, int rank) {
  for (int channel = 0; channel < wiring.geometry.channels; ++channel) {
    Failure& failure = wiring.control.failure(rank, channel);
    // Acquire pairs with the kernel's release: the rest of the record is there.
    const auto kind = static_cast<FailureKind>(load_acquire(failure.kind));
    if (kind == FailureKind::timed_out || kind == FailureKind::mismatched) return &failure;
  }
  return nullptr;
}

std::string text_of(const DeviceWiring& wiring, int rank, const Failure& failure) {
  if (static_cast<FailureKind>(failure.kind) == FailureKind::mismatched) {
    return fmt::format(
        "rank {} made {}, but rank {} made {}. Make the same calls in the same order on all ranks",
        rank, describe(failure.mine), failure.peer, describe(failure.theirs));
  }
  return fmt::format(
      "rank {}: its device waited for rank {} until the deadline of {}; {} slices received, {} "
      "bytes "
      "sent. {} If ranks are only slow, set a longer timeout (CallOptions, CommunicatorOptions or "
      "RONDO_TIMEOUT)",
      rank, failure.peer, describe(failure.mine), failure.slices_received, failure.bytes_sent,
      who_is_missing(wiring, failure.mine));
}

}  // namespace rondo::detail::gpu

#include "cuda/engine/failure_text.hpp"

#include <chrono>
#include <cstring>
#include <iterator>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "engine/call_text.hpp"
#include "plan/call_signature.hpp"

namespace rondo::detail::gpu {
namespace {

std::string who_is_missing(const DeviceWiring& wiring, int rank) {
  const std::uint64_t calls = load_relaxed(wiring.control.presence(rank).calls);
  std::string missing;
  for (const int other : wiring.ranks_sharing) {
    if (load_relaxed(wiring.control.presence(other).calls) >= calls) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", other);
  }
  if (missing.empty()) return "All ranks of this host have begun that call.";
  return fmt::format("Ranks of this host whose device has not begun that call: {}.", missing);
}

Signature signature_of(const DevicePresence& presence) {
  Signature signature;
  std::memcpy(&signature, presence.signature, sizeof(signature));
  return signature;
}

// Nothing if the rank's device has shown no call, or is showing another one at this moment: then
// the number in the signature and the number of calls are of different calls, or the number of
// calls changes meanwhile. (The device's stores are not ordered, so words of two calls may still
// meet here: see other_call_at_the_same_time().)
std::optional<DevicePresence> presence_of(const DeviceWiring& wiring, int rank) {
  DevicePresence copy;
  DevicePresence& presence = wiring.control.presence(rank);
  copy.calls = load_relaxed(presence.calls);
  for (std::size_t i = 0; i < std::size(copy.signature); ++i) {
    copy.signature[i] = load_relaxed(presence.signature[i]);
  }
  if (signature_of(copy).sequence + 1 != copy.calls) return std::nullopt;
  if (load_relaxed(presence.calls) != copy.calls) return std::nullopt;
  return copy;
}

// The number of calls that the rank has shown. If another channel has failed, this waits: channel 0
// may not have shown the call yet, but will when it finds that the communicator has ended. Its
// signature cannot tell whether it has: calls that follow each other are often alike.
std::uint64_t calls_shown(const DeviceWiring& wiring, int rank, const KernelFailure& failure) {
  std::uint64_t& calls = wiring.control.presence(rank).calls;
  const std::uint64_t before = load_relaxed(calls);
  if (&failure == &wiring.control.failure(rank, 0)) return before;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  while (load_relaxed(calls) == before && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::yield();
  }
  return load_relaxed(calls);
}

}  // namespace

const KernelFailure* failure_of(const DeviceWiring& wiring, int rank) {
  for (int block = 0; block < wiring.geometry.blocks(); ++block) {
    KernelFailure& failure = wiring.control.failure(rank, block);
    // Acquire pairs with the kernel's release: the rest of the record is there.
    const auto kind = static_cast<FailureKind>(load_acquire(failure.kind));
    if (kind == FailureKind::timed_out || kind == FailureKind::mismatched) return &failure;
  }
  return nullptr;
}

std::string text_of(const DeviceWiring& wiring, int rank, const KernelFailure& failure) {
  // Each channel counts only its own calls; the text gives the rank's count, which its channel 0
  // shows.
  Signature mine = failure.mine;
  Signature theirs = failure.theirs;
  if (!is_message_signature(mine)) {
    const std::uint64_t calls = calls_shown(wiring, rank, failure);
    const std::uint64_t offset = calls > mine.sequence ? calls - 1 - mine.sequence : 0;
    mine.sequence += offset;
    if (!is_message_signature(theirs)) theirs.sequence += offset;
  }
  if (static_cast<FailureKind>(failure.kind) == FailureKind::mismatched) {
    return text_of_mismatch(rank, mine, failure.peer, theirs);
  }
  return text_of_timeout(
      fmt::format("rank {}: its device", rank), failure.peer, mine,
      describe(Progress{failure.slices_received, failure.bytes_sent}),
      is_message_signature(mine) ? kUnmatchedMessage : who_is_missing(wiring, rank));
}

std::optional<OtherCall> other_call_at_the_same_time(const DeviceWiring& wiring, int rank) {
  const std::optional<DevicePresence> mine = presence_of(wiring, rank);
  if (!mine) return std::nullopt;
  for (const int other : wiring.ranks_sharing) {
    const std::optional<DevicePresence> theirs = presence_of(wiring, other);
    if (!theirs || theirs->calls != mine->calls) continue;
    if (std::memcmp(mine->signature, theirs->signature, sizeof(mine->signature)) == 0) continue;
    return OtherCall{other, signature_of(*mine), signature_of(*theirs)};
  }
  return std::nullopt;
}

}  // namespace rondo::detail::gpu

#include "engine/wait_ends.hpp"

#include <algorithm>
#include <chrono>

#include "base/rank_pair.hpp"

namespace rondo::detail {

std::optional<Failure> find_missing_rank(const Wiring& wiring, std::uint64_t sequence) {
  const HostSegment& segment = *wiring.links.segment;
  for (const int rank : wiring.links.ranks_sharing) {
    if (segment.presence(rank).left_before(sequence)) return Failure{Cause::peer_left, rank};
  }
  for (const int rank : wiring.waiting.peers.ended()) {
    if (!segment.presence(rank).has_ended(sequence)) return Failure{Cause::peer_ended, rank};
  }
  return std::nullopt;
}

namespace {

// What a process has sent before it ended may still be on its way. So a rank fails only if it has
// waited for so long since.
constexpr std::chrono::milliseconds kStillOnItsWay{500};

// What ends within so long after another has the same cause.
constexpr std::chrono::seconds kOneEnd{2};

int rank_of_member(const Waiting& waiting, int member) {
  const auto at = std::find(waiting.watched_as.begin(), waiting.watched_as.end(), member);
  return at == waiting.watched_as.end() ? kAnyPeer
                                        : static_cast<int>(at - waiting.watched_as.begin());
}

Failure failure_of(const HostWatch::Gone& gone, int rank) {
  return {gone.host_vanished ? Cause::host_vanished : Cause::peer_ended, rank};
}

// What looks at all ranks sees more, and takes several system calls for each.
bool has_ended(const PeerWatch& peers, int rank, bool everyone) {
  if (!everyone) return peers.ended(rank);
  const std::vector<int> ended = peers.ended();
  return std::find(ended.begin(), ended.end(), rank) != ended.end();
}

}  // namespace

std::optional<Failure> find_gone_rank(const Wiring& wiring) {
  if (wiring.waiting.hosts == nullptr) return std::nullopt;
  for (const HostWatch::Gone& gone : wiring.waiting.hosts->gone()) {
    const int rank = rank_of_member(wiring.waiting, gone.member);
    if (rank != kAnyPeer) return failure_of(gone, rank);
  }
  return std::nullopt;
}

std::optional<Failure> WaitEnds::find_missing(int peer, bool everyone,
                                              Clock::time_point since) const {
  const std::uint64_t call = signature_.sequence;
  if (wiring_.shares_memory(peer)) {
    Presence& presence = wiring_.links.segment->presence(peer);
    if (message_ ? presence.has_left() : presence.left_before(call)) {
      return Failure{Cause::peer_left, peer};
    }
  }
  if (everyone && has_left_elsewhere(peer, since)) return Failure{Cause::peer_left, peer};
  if (has_ended(wiring_.waiting.peers, peer, everyone)) {
    return Failure{Cause::peer_ended, peer};
  }
  if (const auto failure = everyone ? find_gone(peer, since) : std::nullopt) return failure;
  return everyone && !message_ ? find_missing_rank(wiring_, call) : std::nullopt;
}

bool WaitEnds::has_left_elsewhere(int peer, Clock::time_point since) const {
  Pump* pump = wiring_.links.pump.get();
  if (pump == nullptr || wiring_.shares_memory(peer)) return false;
  return Clock::now() - since > kStillOnItsWay && pump->has_left(peer);
}

std::optional<Failure> WaitEnds::find_gone(int peer, Clock::time_point since) const {
  const Waiting& waiting = wiring_.waiting;
  if (waiting.hosts == nullptr) return std::nullopt;
  const std::vector<HostWatch::Gone> all = waiting.hosts->gone();
  for (const HostWatch::Gone& gone : all) {
    const int rank = rank_of_member(waiting, gone.member);
    if (rank == kAnyPeer) continue;
    if (gone.host_vanished) return failure_of(gone, rank);
    // The process of another rank may have ended when it had made its part of this call.
    const bool nothing_comes =
        rank == peer && Clock::now() - std::max(gone.since, since) > kStillOnItsWay;
    if (nothing_comes) return first_of_end(all, gone);
  }
  return std::nullopt;
}

// The process may have ended because another one had, just before.
Failure WaitEnds::first_of_end(const std::vector<HostWatch::Gone>& all,
                               const HostWatch::Gone& end) const {
  for (const HostWatch::Gone& gone : all) {
    const int rank = rank_of_member(wiring_.waiting, gone.member);
    if (rank != kAnyPeer && end.since - gone.since < kOneEnd) return failure_of(gone, rank);
  }
  return failure_of(end, rank_of_member(wiring_.waiting, end.member));
}

std::optional<Failure> WaitEnds::if_another(int rank, const Signature& call) const {
  if (call.sequence != signature_.sequence || call == signature_) return std::nullopt;
  return Failure{Cause::other_call, rank, call};
}

// Ranks of several hosts may wait for each other in different calls before any of them has sent
// anything. Then at least one of them waits for a rank that is in another call. So each rank tells
// the rank it waits for which call it is in.
std::optional<Failure> WaitEnds::find_told_call(int peer) {
  Pump& pump = *wiring_.links.pump;
  pump.drive_all();
  const auto& told = pump.notices().told_calls();
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    if (!told[rank]) continue;
    if (const auto failure = if_another(static_cast<int>(rank), *told[rank])) return failure;
  }
  if (!wiring_.shares_memory(peer)) pump.notices().tell_call(peer, signature_);
  return std::nullopt;
}

// Ranks of this host show which call they are in. Ranks that have ended that call, and ranks of
// other hosts, have sent slots of their call, maybe along an edge that this rank's call does not
// use: so the FIFOs of all edges are checked, except pairwise ones. In a call along these, some
// rank always still waits for the one that made another call, and learns of that by what it shows
// or tells.
std::optional<Failure> WaitEnds::find_other_call(int peer, bool at_rest) {
  if (message_) return std::nullopt;
  for (const int rank : wiring_.links.ranks_sharing) {
    const auto call = wiring_.links.segment->presence(rank).call(signature_.sequence);
    if (!call) continue;
    if (const auto failure = if_another(rank, call->signature)) return failure;
  }
  if (wiring_.links.pump != nullptr && at_rest) {
    if (const auto failure = find_told_call(peer)) return failure;
  }
  for (std::size_t position = 0; position < wiring_.links.from.size(); ++position) {
    RecvEnd& end = wiring_.links.from[position];
    if (end.geometry().slots == 0 || !end.can_peek()) continue;
    const int rank = wiring_.topology.ring[position];
    if (const auto failure = if_another(rank, end.slot()->signature)) return failure;
  }
  return std::nullopt;
}

}  // namespace rondo::detail

#include "engine/waiter.hpp"

#include <sched.h>

#include <algorithm>

namespace rondo::detail {
namespace {

// Without a pause between them, which takes longer than a line takes to come from another core.
constexpr int kEagerLooks = 64;
constexpr int kSpinsPerRound = 32;
// About 100 µs of spinning: longer than a peer needs for a slice, shorter than a time slice.
constexpr std::uint64_t kSpinRounds = 64;
// Yielding is cheap where there is something else to run, and a sleep may take tens of µs to end.
constexpr std::uint64_t kYieldRounds = 2000;
// Bytes for each rank of a call that is long on a network: what is under way lasts longer than a nap, and the core
// is the trainer's, so only a few looks come before the first. In shorter calls each hop would wait for a nap to end.
constexpr std::uint64_t kBulkAwakeRounds = 4;
constexpr std::uint64_t kBulkChunkBytes = std::uint64_t{128} << 10U;
constexpr std::uint64_t kRoundsPerYieldWithPump = 8;
constexpr std::uint64_t kRoundsPerClock = 64;
// The rank waited for is looked at each time; all others are then late for a reason of their own.
constexpr auto kRollCallInterval = std::chrono::milliseconds(100);
constexpr auto kShortestNap = std::chrono::microseconds(50);
constexpr auto kLongestNap = std::chrono::microseconds(1000);

// Not when each look keeps someone from working: the pump, or a peer that waits for this core.
bool looks_at_once(const Company& company) { return company.pump == nullptr && !company.crowded; }

}  // namespace

std::optional<Stop> find_missing_rank(HostSegment& segment, const std::vector<int>& ranks_sharing,
                                      const PeerWatch& peers, std::uint64_t sequence) {
  for (const int rank : ranks_sharing) {
    if (segment.presence(rank).left_before(sequence)) return Stop{WaitResult::peer_left, rank};
  }
  for (const int rank : peers.ended()) {
    if (!segment.presence(rank).has_ended(sequence)) return Stop{WaitResult::peer_ended, rank};
  }
  return std::nullopt;
}

Waiter::Waiter(const Company& company)
    : company_(company),
      board_(company.segment->board()),
      eager_looks_(looks_at_once(company) ? kEagerLooks : 1),
      spins_per_round_(looks_at_once(company) ? kSpinsPerRound : 1) {}

void Waiter::begin_call(const Signature& signature, std::chrono::milliseconds timeout,
                        bool background) {
  signature_ = signature;
  background_ = background;
  const std::uint64_t bytes = signature.count * size_of(static_cast<DataType>(signature.type));
  const bool bulk = bytes / company_.ring->size() >= kBulkChunkBytes;
  naps_early_ = company_.nap.count() > 0 && (bulk || background);
  spin_rounds_ = looks_at_once(company_) && !background ? kSpinRounds : 1;
  awake_rounds_ = spin_rounds_;
  if (naps_early_) {
    awake_rounds_ += kBulkAwakeRounds;
  } else if (!background) {
    awake_rounds_ += kYieldRounds;
  }
  timeout_ = timeout;
  clock_runs_ = false;
}

// A rank that has ended the communicator may have left since the board was looked at: its reason is the better one.
// It raised the board before it left, and what was found was read with acquire.
WaitResult Waiter::unless_aborted(WaitResult found) const {
  return board_.raised() ? WaitResult::aborted : found;
}

void Waiter::start_clock(Clock::time_point now) {
  if (clock_runs_) return;
  clock_runs_ = true;
  deadline_ = deadline_after(timeout_, now);
  roll_call_ = now + kRollCallInterval;
}

WaitResult Waiter::found(WaitResult result, int rank) {
  found_ = {result, rank};
  return result;
}

// The rank that is waited for is missed even if it had ended this call before its process ended.
std::optional<WaitResult> Waiter::find_missing(int peer, bool everyone) {
  HostSegment& segment = *company_.segment;
  const std::uint64_t call = signature_.sequence;
  if (shares_memory(peer) && segment.presence(peer).left_before(call)) {
    return found(WaitResult::peer_left, peer);
  }
  if (company_.peers->ended(peer)) return found(WaitResult::peer_ended, peer);
  if (!everyone) return std::nullopt;
  const auto missing = find_missing_rank(segment, *company_.ranks_sharing, *company_.peers, call);
  if (!missing) return std::nullopt;
  return found(missing->result, missing->peer);
}

bool Waiter::shares_memory(int rank) const {
  const std::vector<int>& sharing = *company_.ranks_sharing;
  return std::find(sharing.begin(), sharing.end(), rank) != sharing.end();
}

bool Waiter::is_another_call(int rank, const Signature& call) {
  if (call.sequence != signature_.sequence || call == signature_) return false;
  found_ = {WaitResult::other_call, rank, call};
  return true;
}

// Ranks of this host show what they are in; those that are through with it, and those of other hosts, have sent
// something of it, maybe along an edge that this call does not use. Where ranks of several hosts wait for each
// other in different calls before they have sent anything, at least one waits for a rank in another call than
// its own; so each tells the rank that it waits for.
bool Waiter::someone_is_in_another_call(int peer, bool at_rest) {
  for (const int rank : *company_.ranks_sharing) {
    const auto call = company_.segment->presence(rank).call(signature_.sequence);
    if (call && is_another_call(rank, *call)) return true;
  }
  if (company_.pump != nullptr && at_rest) {
    company_.pump->drive_all();
    const auto& told = company_.pump->told_calls();
    for (std::size_t rank = 0; rank < told.size(); ++rank) {
      if (told[rank] && is_another_call(static_cast<int>(rank), *told[rank])) return true;
    }
    if (!shares_memory(peer)) company_.pump->tell_call(peer, signature_);
  }
  for (std::size_t position = 0; position < company_.from->size(); ++position) {
    RecvEnd& end = (*company_.from)[position];
    if (end.geometry().slots == 0 || !end.can_peek()) continue;
    if (is_another_call((*company_.ring)[position], end.slot()->signature)) return true;
  }
  return false;
}

std::optional<WaitResult> Waiter::look_around(std::uint64_t round, int peer) {
  const bool moved = company_.pump != nullptr && company_.pump->progress();
  if (board_.raised()) return WaitResult::aborted;
  if (round < spin_rounds_) return std::nullopt;
  const bool sleeps = round >= awake_rounds_;
  if (!sleeps && round % kRoundsPerClock != 0) return std::nullopt;
  if (round % kRoundsPerClock == 0 && someone_is_in_another_call(peer, sleeps && !moved)) {
    return unless_aborted(WaitResult::other_call);
  }
  const auto now = Clock::now();
  start_clock(now);
  const bool too_late = now >= deadline_;
  const bool everyone = too_late || now >= roll_call_;
  if (everyone) roll_call_ = now + kRollCallInterval;
  if (const auto missing = find_missing(peer, everyone)) return unless_aborted(*missing);
  if (too_late) return WaitResult::timed_out;
  return std::nullopt;
}

void Waiter::yield(std::uint64_t round) const {
  // MPI yields by itself where it was told to, and who naps soon need not.
  if (company_.pump == nullptr || (round + 1) % kRoundsPerYieldWithPump == 0) ::sched_yield();
}

std::chrono::microseconds Waiter::nap(std::uint64_t round) const {
  if (naps_early_) return company_.nap;
  // A bell ends it, and each look costs whoever computes.
  if (background_ && company_.pump == nullptr) return kLongestNap;
  const std::uint64_t naps = round - awake_rounds_;
  return std::min<std::chrono::microseconds>(
      kLongestNap, kShortestNap * static_cast<int>(std::min<std::uint64_t>(naps + 1, 100)));
}

}  // namespace rondo::detail

#include "engine/inside.hpp"

#include <algorithm>
#include <cassert>

#include "reduce/fold.hpp"
#include "schedule/ring_steps.hpp"

namespace rondo::detail {
namespace {

// A chunk of up to so many bytes is one cell: to wait for all ranks of the host at each cell would take longer than what
// goes on at once saves.
constexpr std::size_t kWholeBytes = 8192;

// How often a rank that works and never waits drives the pump: MPI may give its core away when it has nothing to move.
constexpr int kStepsPerPoll = 16;

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

Inside::Inside(Wiring& wiring, Waiter& waiter)
    : wiring_(wiring), waiter_(waiter), copy_(vector_copy()) {
  const std::vector<int>& ranks = wiring.links.ranks_sharing;
  index_ = static_cast<int>(std::find(ranks.begin(), ranks.end(), wiring.rank) - ranks.begin());
  owners_ = wiring.links.rails;
  ins_.resize(ranks.size());
}

Range Inside::chunk_of(const Call& call, int owner) const {
  return chunk_range(call.count, static_cast<std::uint64_t>(owners_),
                     static_cast<std::uint64_t>(owner), kChunkGranuleBytes / size_of(call.type));
}

Slicing Inside::rail_of(int owner) const {
  Slicing rail = rail_;
  rail.count = chunk_of(*call_, owner).count;
  return rail;
}

void Inside::begin(const Call& call, ReduceOp op, const Slicing& rail) {
  const std::size_t element = size_of(call.type);
  const std::uint64_t granule = kChunkGranuleBytes / element;
  const std::size_t stage_bytes = wiring_.links.segment->stage_bytes();
  call_ = &call;
  op_ = op;
  elems_reduced_ = stage_bytes / static_cast<std::size_t>(owners_) / element / granule * granule;
  elems_spread_ = stage_bytes / element;
  const bool alone = wiring_.links.hosts == 1;
  const bool whole = chunk_of(call, 0).count * element <= kWholeBytes;
  parts_ = alone || whole ? 1 : wiring_.links.hosts;
  rail_ = rail;
  if (parts_ == 1) {
    // Alone, a whole number of windows of either kind of job.
    const std::uint64_t elems_alone = static_cast<std::uint64_t>(owners_) * elems_reduced_;
    const std::uint64_t all = std::max<std::uint64_t>(chunk_of(call, 0).count, 1);
    rail_ = Slicing{.granule = granule, .slice_elems = alone ? elems_alone : all};
  }
  cells_ = rail_of(0).windows() * static_cast<std::uint64_t>(parts_);
  // Of the rail's next window too, so that the rail goes on while this one's cells are spread.
  ahead_ = parts_ == 1 ? 1 : std::min(2 * static_cast<std::uint64_t>(parts_), cells_);
  final_cells_ = alone ? cells_ : 0;
  windows_before_ = windows_;
  job_ = 0;
  window_ = 0;
  arrived_ = false;
}

// The first `ahead_` cells are reduced, then one is spread and one reduced in turn, then the last `ahead_` are spread.
Inside::Job Inside::job_at(std::uint64_t number) const {
  if (number < ahead_) return {false, number};
  const std::uint64_t after = number - ahead_;
  const std::uint64_t pairs = cells_ - ahead_;
  if (after >= 2 * pairs) return {true, after - pairs};
  return after % 2 == 0 ? Job{true, after / 2} : Job{false, ahead_ + after / 2};
}

std::uint64_t Inside::number_of_reduction(std::uint64_t cell) const {
  return cell < ahead_ ? cell : ahead_ + 2 * (cell - ahead_) + 1;
}

// The same on all ranks of the host: for the largest cell of that number. The first reduction has one in any case, so that
// no rank leaves the call before all have met.
std::uint64_t Inside::windows_of(const Job& job) const {
  const Slicing rail = rail_of(0);
  const std::uint64_t most = rail.window * rail.slice_elems;
  const std::uint64_t before = job.cell / static_cast<std::uint64_t>(parts_) * most;
  const std::uint64_t all = rail.part(0).count;
  const std::uint64_t count = before < all ? std::min(most, all - before) : 0;
  const std::uint64_t windows = divide_up(count, job.spreads ? elems_spread_ : elems_reduced_);
  return job_ == 0 ? std::max<std::uint64_t>(windows, 1) : windows;
}

// The ring's step i of a window sends or reduces part p - 1 - i, on host p, and the parts become final in the order p,
// p - 1, and so on (schedule/ring_steps.hpp).
Range Inside::elements(const Job& job, int owner) const {
  const auto in_window = static_cast<int>(job.cell % static_cast<std::uint64_t>(parts_));
  const int first = wiring_.links.host - (job.spreads ? 0 : 1);
  const Slicing rail = rail_of(owner);
  const Range part = rail.part(static_cast<std::uint64_t>(ring::wrap(first - in_window, parts_)));
  const std::uint64_t most = rail.window * rail.slice_elems;
  const std::uint64_t at_once = job.spreads ? elems_spread_ : elems_reduced_;
  const std::uint64_t cell = job.cell / static_cast<std::uint64_t>(parts_) * most;
  const std::uint64_t end = std::min(cell + most, part.count);
  const std::uint64_t begin = std::min(cell + window_ * at_once, end);
  return {chunk_of(*call_, owner).offset + part.offset + begin, std::min(at_once, end - begin)};
}

std::uint64_t Inside::rail_window_of(const Slicing& rail, int part, const Range& slice) const {
  const Range whole = rail.part(static_cast<std::uint64_t>(part));
  return (slice.offset - whole.offset) / rail.slice_elems / rail.window;
}

bool Inside::require_reduced(int part, const Range& slice) {
  if (parts_ == 1) return do_jobs_before(1);
  const std::uint64_t before =
      rail_window_of(rail_of(index_), part, slice) * static_cast<std::uint64_t>(parts_);
  final_cells_ = std::max(final_cells_, before);  // the rail is through with the windows before
  const int in_window = ring::wrap(wiring_.links.host - 1 - part, parts_);
  return do_jobs_before(number_of_reduction(before + static_cast<std::uint64_t>(in_window)) + 1);
}

void Inside::note_final(int part, const Range& slice) {
  if (parts_ == 1) return;
  const Slicing rail = rail_of(index_);
  const std::uint64_t window = rail_window_of(rail, part, slice);
  const Range whole = rail.part(static_cast<std::uint64_t>(part));
  const std::uint64_t end = slice.offset + slice.count - whole.offset;
  if (end < std::min((window + 1) * rail.window * rail.slice_elems, whole.count)) return;
  const int in_window = ring::wrap(wiring_.links.host - part, parts_);
  const std::uint64_t cell =
      window * static_cast<std::uint64_t>(parts_) + static_cast<std::uint64_t>(in_window);
  final_cells_ = std::max(final_cells_, cell + 1);
}

bool Inside::work() {
  while (job_ < jobs() && windows_of(job_at(job_)) == 0) ++job_;
  if (job_ == jobs()) return false;
  const Job job = job_at(job_);
  if (!arrived_) {
    if (job.spreads && owns() && job.cell >= final_cells_) return false;
    write_stage(job);
    arrive();
    return true;
  }
  if (missing()) return false;
  read_stages(job);
  next_window(job);
  return true;
}

void Inside::next_window(const Job& job) {
  arrived_ = false;
  if (++window_ < windows_of(job)) return;
  window_ = 0;
  ++job_;
}

bool Inside::do_jobs_before(std::uint64_t number) {
  int worked = 0;
  while (job_ < number) {
    if (work()) {
      if (++worked % kStepsPerPoll == 0) waiter_.poll();
      continue;
    }
    if (job_ >= number) break;  // the jobs left had nothing to do
    // The cells that are to be spread before are final (docs/ring.md), so only a rank that has not arrived is missing.
    assert(arrived_);
    const std::optional<int> rank = missing();
    if (!rank) continue;
    const WaitResult result =
        waiter_.wait(*rank, [&] { return presence(*rank).has_arrived(windows_); });
    if (result != WaitResult::ready) return wait_failed(*rank, result);
  }
  return true;
}

bool Inside::finish() {
  final_cells_ = cells_;
  const bool done = do_jobs_before(jobs());
  call_ = nullptr;
  return done;
}

std::byte* Inside::stage(int index, std::uint64_t window) const {
  return wiring_.links.segment->stage(index, window);
}

bool Inside::wait_failed(int rank, WaitResult result) {
  failure_ = waiter_.why(result, rank);
  return false;
}

bool Inside::meet(const Signature& signature) {
  for (const int rank : wiring_.links.ranks_sharing) {
    if (rank == wiring_.rank) continue;
    const WaitResult result =
        waiter_.wait(rank, [&] { return presence(rank).has_entered(signature.sequence); });
    if (result != WaitResult::ready) return wait_failed(rank, result);
    // A rank that has gone on did not wait for this one, so it made another call.
    const auto call = presence(rank).last_call();
    if (call && call->signature == signature) continue;
    failure_ = {WaitResult::other_call, rank, call ? call->signature : Signature{}};
    return false;
  }
  return true;
}

void Inside::arrive() {
  ++windows_;
  arrived_ = true;
  // Release pairs with the acquire in has_arrived(): whoever finds this finds the stage as it was written.
  presence(wiring_.rank).arrive(windows_);
  for (const int rank : wiring_.links.ranks_sharing) {
    if (rank != wiring_.rank) wiring_.links.segment->bell(rank).ring();
  }
}

std::optional<int> Inside::missing() const {
  for (const int rank : wiring_.links.ranks_sharing) {
    if (rank != wiring_.rank && !presence(rank).has_arrived(windows_)) return rank;
  }
  return std::nullopt;
}

// To reduce, each owner has a room of its own in each stage; to spread, its own stage.
void Inside::write_stage(const Job& job) {
  const std::size_t element = size_of(call_->type);
  std::byte* to = stage(index_, windows_);
  if (job.spreads) {
    const bool anyone_reads = ins_.size() > 1;
    const Range slice = owns() && anyone_reads ? elements(job, index_) : Range{};
    if (slice.count == 0) return;  // the buffers of an empty vector may be null
    copy_.cached(to, static_cast<const std::byte*>(call_->out) + slice.offset * element,
                 slice.count * element);
    return;
  }
  for (int owner = 0; owner < owners_; ++owner) {
    if (owner == index_) continue;
    const Range slice = elements(job, owner);
    if (slice.count == 0) continue;
    copy_.cached(to + static_cast<std::size_t>(owner) * elems_reduced_ * element,
                 static_cast<const std::byte*>(call_->in) + slice.offset * element,
                 slice.count * element);
  }
}

void Inside::read_stages(const Job& job) {
  const std::uint64_t window = windows_ - 1;
  if (!job.spreads) {
    if (owns()) fold(elements(job, index_), window);
    return;
  }
  const std::size_t element = size_of(call_->type);
  for (int owner = 0; owner < owners_; ++owner) {
    if (owner == index_) continue;
    const Range slice = elements(job, owner);
    if (slice.count == 0) continue;
    copy_.cached(static_cast<std::byte*>(call_->out) + slice.offset * element, stage(owner, window),
                 slice.count * element);
  }
}

// Of all ranks' elements of this slice, which are in the stages of `window`.
void Inside::fold(const Range& slice, std::uint64_t window) {
  if (slice.count == 0) return;
  const std::size_t element = size_of(call_->type);
  const std::size_t offset = slice.offset * element;
  const std::size_t in_stage = static_cast<std::size_t>(index_) * elems_reduced_ * element;
  for (std::size_t i = 0; i < ins_.size(); ++i) {
    const bool own = static_cast<int>(i) == index_;
    ins_[i] = own ? static_cast<const std::byte*>(call_->in) + offset
                  : stage(static_cast<int>(i), window) + in_stage;
  }
  std::byte* out = static_cast<std::byte*>(call_->out) + offset;
  vector_fold(call_->type, op_)({&out, 1, ins_.data(), ins_.size()}, slice.count);
}

}  // namespace rondo::detail

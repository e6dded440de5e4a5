#include "engine/inside.hpp"

#include <algorithm>
#include <cassert>

#include "reduce/fold.hpp"

namespace rondo::detail {
namespace {

// How often a rank that works and never waits drives the pump: MPI may give its core away when it
// has nothing to move.
constexpr int kStepsPerPoll = 16;

}  // namespace

Inside::Inside(Context& context)
    : context_(context), wiring_(context.wiring), copy_(vector_copy()) {
  const std::vector<int>& ranks = wiring_.links.ranks_sharing;
  index_ = static_cast<int>(std::find(ranks.begin(), ranks.end(), wiring_.rank) - ranks.begin());
  buffers_.resize(ranks.size());
  ins_.resize(ranks.size());
}

void Inside::begin(const Call& call, ReduceOp op, const AverageFactors& average, int owners,
                   const std::optional<Slicing>& rail) {
  const std::size_t element = size_of(call.type);
  const std::uint64_t granule = kChunkGranuleBytes / element;
  const std::size_t stage_bytes = wiring_.links.segment->stage_bytes();
  call_ = &call;
  op_ = op;
  average_ = average;
  owners_ = owners;
  const JobWindows at_once{
      stage_bytes / static_cast<std::size_t>(owners) / element / granule * granule,
      stage_bytes / element};
  cells_ = Cells(call, owners, wiring_.links.host, wiring_.links.hosts, rail, at_once);
  reaches_ = false;
  final_cells_ = wiring_.links.hosts == 1 ? cells_.count() : 0;
  job_ = 0;
  window_ = 0;
  arrived_ = false;
}

void Inside::require_reduced(int part, const Range& slice) {
  const std::uint64_t cell = cells_.cell_with(false, index_, part, slice);
  // The rail is through with the windows before.
  final_cells_ = std::max(final_cells_, cells_.window_start(cell));
  do_jobs_before(cells_.number_of_reduction(cell) + 1);
}

void Inside::note_final(int part, const Range& slice) {
  if (!cells_.ends_cell(index_, part, slice)) return;
  final_cells_ = std::max(final_cells_, cells_.cell_with(true, index_, part, slice) + 1);
}

bool Inside::work() {
  if (job_ == cells_.jobs()) return false;
  const Job job = cells_.job_at(job_);
  if (!arrived_ && job.spreads && owns() && job.cell >= final_cells_) return false;
  if (reaches_) {
    do_window(job);
    next_window(job);
    return true;
  }
  if (!arrived_) {
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
  if (++window_ < cells_.windows_of(job)) return;
  window_ = 0;
  ++job_;
  ++context_.progress.jobs;
}

void Inside::do_jobs_before(std::uint64_t number) {
  int worked = 0;
  while (job_ < number) {
    if (work()) {
      if (++worked % kStepsPerPoll == 0) context_.waiter.poll();
      continue;
    }
    // The cells that are to be spread before are final (docs/ring.md), so only a rank that has not
    // arrived is missing.
    assert(arrived_);
    const std::optional<int> rank = missing();
    if (!rank) continue;
    Presence& theirs = context_.presence(*rank);
    context_.waiter.wait(*rank, [&] { return theirs.has_arrived(windows_); });
  }
}

void Inside::finish() {
  final_cells_ = cells_.count();
  do_jobs_before(cells_.jobs());
  if (!reaches_) return;
  context_.touching.end();
  context_.touching.wait_for_all();
}

void Inside::meet(const ShownCall& shown) {
  const std::uint64_t sequence = shown.signature.sequence;
  // This rank knows already that data goes through stages, so it writes its own before the others
  // come. None of them enters the next call before this rank has met it: that needs this rank's
  // arrival at the second window.
  if (!reachable(shown.buffers)) {
    work();
  } else {
    ring_all(wiring_.links.bells);  // wakes ranks that wait until this rank has shown its buffers
  }
  bool reached = true;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const int rank = wiring_.links.ranks_sharing[i];
    buffers_[i] = shown.buffers;
    if (rank != wiring_.rank) {
      Presence& theirs = context_.presence(rank);
      context_.waiter.wait(rank, [&] { return theirs.has_entered(sequence); });
      // A rank that has gone on did not wait for this one, so it made another call.
      const auto call = theirs.last_call();
      if (!call || !(call->signature == shown.signature)) {
        throw Failure{Cause::other_call, rank, call ? call->signature : Signature{}};
      }
      buffers_[i] = call->buffers;
    }
    reached = reached && reachable(buffers_[i]);
  }
  if (!reached) return;
  reaches_ = true;
  if (!owns()) job_ = cells_.jobs();
  Progress& progress = context_.progress;
  progress.ranks = progress.ranks_shown = static_cast<int>(buffers_.size());
  context_.touching.begin();
}

void Inside::arrive() {
  ++windows_;
  arrived_ = true;
  // Release pairs with the acquire in has_arrived(): whoever finds this finds the stage as it was
  // written.
  context_.presence(wiring_.rank).arrive(windows_);
  for (const int rank : wiring_.links.ranks_sharing) {
    if (rank != wiring_.rank) wiring_.links.segment->bell(rank).ring();
  }
}

std::optional<int> Inside::missing() const {
  for (const int rank : wiring_.links.ranks_sharing) {
    if (rank != wiring_.rank && !context_.presence(rank).has_arrived(windows_)) return rank;
  }
  return std::nullopt;
}

void Inside::do_window(const Job& job) {
  const Range slice = elements(job, index_);
  if (slice.count == 0) return;  // the buffers of an empty vector may be null
  if (job.spreads) {
    spread_to_all(slice);
  } else {
    fold(slice);
  }
}

std::byte* Inside::find(std::size_t index, std::uint64_t location) const {
  return wiring_.links.registry->find(wiring_.links.ranks_sharing[index], location);
}

void Inside::spread_to_all(const Range& slice) {
  const std::size_t element = size_of(call_->type);
  const std::byte* from = static_cast<const std::byte*>(call_->out) + slice.offset * element;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (static_cast<int>(i) == index_) continue;
    copy_.cached(find(i, buffers_[i].out) + slice.offset * element, from, slice.count * element);
  }
}

std::byte* Inside::stage(int index, std::uint64_t window) const {
  return wiring_.links.segment->stage(index, window);
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
    copy_.cached(to + static_cast<std::size_t>(owner) * cells_.at_once().elems_reduced * element,
                 static_cast<const std::byte*>(call_->in) + slice.offset * element,
                 slice.count * element);
  }
}

void Inside::read_stages(const Job& job) {
  if (!job.spreads) {
    const Range slice = owns() ? elements(job, index_) : Range{};
    if (slice.count > 0) fold(slice);
    return;
  }
  const std::size_t element = size_of(call_->type);
  for (int owner = 0; owner < owners_; ++owner) {
    if (owner == index_) continue;
    const Range slice = elements(job, owner);
    if (slice.count == 0) continue;
    copy_.cached(static_cast<std::byte*>(call_->out) + slice.offset * element,
                 stage(owner, windows_ - 1), slice.count * element);
  }
}

void Inside::find_inputs(const Range& slice) {
  const std::size_t element = size_of(call_->type);
  const std::size_t offset = slice.offset * element;
  const std::size_t in_stage =
      static_cast<std::size_t>(index_) * cells_.at_once().elems_reduced * element;
  for (std::size_t i = 0; i < ins_.size(); ++i) {
    if (static_cast<int>(i) == index_) {
      ins_[i] = static_cast<const std::byte*>(call_->in) + offset;
    } else if (reaches_) {
      ins_[i] = find(i, buffers_[i].in) + offset;
    } else {
      ins_[i] = stage(static_cast<int>(i), windows_ - 1) + in_stage;
    }
  }
}

// Reduces this slice of all ranks' elements into the owner's output.
void Inside::fold(const Range& slice) {
  find_inputs(slice);
  std::byte* out = static_cast<std::byte*>(call_->out) + slice.offset * size_of(call_->type);
  vector_fold(call_->type, op_)({&out, 1, ins_.data(), ins_.size(), average_}, slice.count);
}

}  // namespace rondo::detail

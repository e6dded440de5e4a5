#include "engine/inside.hpp"

#include <algorithm>
#include <cassert>

#include "engine/fold_call.hpp"

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
                   bool crosses, std::uint64_t most_elems) {
  const std::size_t element = element_bytes(call);
  const std::uint64_t granule = granule_elems(element);
  const std::size_t pass_bytes = wiring_.links.segment->stage_bytes() / kStageParts;
  call_ = &call;
  op_ = op;
  average_ = average;
  owners_ = owners;
  const std::size_t area_bytes =
      pass_bytes / static_cast<std::size_t>(owners) / kChunkGranuleBytes * kChunkGranuleBytes;
  elems_reduced_ = area_bytes / element / granule * granule;
  elems_spread_ = pass_bytes / element / granule * granule;
  assert(elems_reduced_ > 0);
  const auto all = static_cast<std::uint64_t>(owners);
  most_elems_ = most_elems > 0 ? most_elems : all * all * elems_reduced_;
  pieces_ = std::max<std::uint64_t>((call.count + most_elems_ - 1) / most_elems_, 1);
  reaches_ = false;
  final_pieces_ = crosses ? 0 : pieces_;
  job_ = 0;
  pass_ = 0;
  arrived_ = false;
}

Inside::Job Inside::job_at(std::uint64_t number) const {
  if (number == 0) return {false, 0};
  if (number + 1 == jobs()) return {true, pieces_ - 1};
  return number % 2 == 1 ? Job{false, (number + 1) / 2} : Job{true, number / 2 - 1};
}

Range Inside::chunk_of(std::uint64_t piece, int owner) const {
  const std::uint64_t begin = piece * most_elems_;
  Range chunk = chunk_range(std::min<std::uint64_t>(most_elems_, call_->count - begin),
                            static_cast<std::uint64_t>(owners_), static_cast<std::uint64_t>(owner),
                            granule_elems(element_bytes(*call_)));
  chunk.offset += begin;
  return chunk;
}

Range Inside::elements(const Job& job, int owner) const {
  const Range chunk = chunk_of(job.piece, owner);
  const std::uint64_t begin = std::min(pass_ * elems_at_once(job), chunk.count);
  return {chunk.offset + begin, std::min(elems_at_once(job), chunk.count - begin)};
}

std::uint64_t Inside::passes_for(const Job& job) const {
  const std::uint64_t largest = chunk_of(job.piece, 0).count;
  return std::max<std::uint64_t>((largest + elems_at_once(job) - 1) / elems_at_once(job), 1);
}

void Inside::require_reduced(std::uint64_t piece) { do_jobs_before(piece == 0 ? 1 : 2 * piece); }

bool Inside::work() {
  if (job_ == jobs()) return false;
  const Job job = job_at(job_);
  if (!arrived_ && job.spreads && owns() && job.piece >= final_pieces_) return false;
  if (!reaches_ && !arrived_) {
    write_stage(job);
    arrive();
    return true;
  }
  if (!reaches_ && missing()) return false;
  if (!job.spreads) {
    if (owns()) fold(job, elements(job, index_));
  } else if (reaches_) {
    spread_to_all(elements(job, index_));
  } else {
    read_stages(job);
  }
  next_pass(job);
  return true;
}

void Inside::next_pass(const Job& job) {
  arrived_ = false;
  ++context_.progress.passes;
  if (++pass_ < passes_for(job)) return;
  pass_ = 0;
  ++job_;
}

void Inside::do_jobs_before(std::uint64_t number) {
  int worked = 0;
  while (job_ < number) {
    if (work()) {
      if (++worked % kStepsPerPoll == 0) context_.waiter.poll();
      continue;
    }
    // The pieces that are to be spread before are final, so only a rank that has not arrived is
    // missing.
    assert(arrived_);
    const std::optional<int> rank = missing();
    if (!rank) continue;
    Presence& theirs = context_.presence(*rank);
    context_.waiter.wait(*rank, [&] { return theirs.has_arrived(passes_); });
  }
}

void Inside::finish() {
  final_pieces_ = pieces_;
  do_jobs_before(jobs());
  if (!reaches_) return;
  context_.touching.end();
  context_.touching.wait_for_all();
}

void Inside::meet(const ShownCall& shown) {
  const std::uint64_t sequence = shown.signature.sequence;
  // This rank knows already that data goes through stages, so it writes its own before the others
  // come. None of them enters the next call before this rank has met it: that needs this rank's
  // arrival at the second pass.
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
  if (!owns()) job_ = jobs();
  Progress& progress = context_.progress;
  progress.ranks = progress.ranks_shown = static_cast<int>(buffers_.size());
  context_.touching.begin();
}

void Inside::arrive() {
  ++passes_;
  arrived_ = true;
  // Release pairs with the acquire in has_arrived(): whoever finds this finds the stage as it was
  // written.
  context_.presence(wiring_.rank).arrive(passes_);
  for (const int rank : wiring_.links.ranks_sharing) {
    if (rank != wiring_.rank) wiring_.links.segment->bell(rank).ring();
  }
}

std::optional<int> Inside::missing() const {
  for (const int rank : wiring_.links.ranks_sharing) {
    if (rank != wiring_.rank && !context_.presence(rank).has_arrived(passes_)) return rank;
  }
  return std::nullopt;
}

std::byte* Inside::find(std::size_t index, std::uint64_t location) const {
  return wiring_.links.reach.find(wiring_.links.ranks_sharing[index], location);
}

void Inside::spread_to_all(const Range& slice) {
  if (slice.count == 0) return;  // the buffers of an empty vector may be null
  const std::size_t element = element_bytes(*call_);
  const std::byte* from = static_cast<const std::byte*>(call_->out) + slice.offset * element;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (static_cast<int>(i) == index_) continue;
    copy_to_outputs_(find(i, buffers_[i].out) + slice.offset * element, from,
                     slice.count * element);
  }
}

std::byte* Inside::stage(int index) const {
  return wiring_.links.segment->stage(index) + pass_begin_;
}

std::size_t Inside::area_bytes(const Job& job) const {
  const std::size_t bytes = elements(job, 0).count * element_bytes(*call_);  // no owner has more
  return (bytes + kChunkGranuleBytes - 1) / kChunkGranuleBytes * kChunkGranuleBytes;
}

void Inside::place_pass(const Job& job) {
  const std::size_t areas = job.spreads ? 1 : static_cast<std::size_t>(owners_);
  pass_begin_ = places_.next(areas * area_bytes(job), wiring_.links.segment->stage_bytes());
}

// To reduce, each owner has an area of its own in each stage; to spread, its own stage.
void Inside::write_stage(const Job& job) {
  place_pass(job);
  const std::size_t element = element_bytes(*call_);
  std::byte* to = stage(index_);
  const auto put = [&](const void* from, const Range& slice) {
    if (slice.count == 0) return;  // the buffers of an empty vector may be null
    copy_to_stage_(to, static_cast<const std::byte*>(from) + slice.offset * element,
                   slice.count * element);
  };
  if (job.spreads) {
    const bool anyone_reads = ins_.size() > 1;
    if (owns() && anyone_reads) put(call_->out, elements(job, index_));
    return;
  }
  for (int owner = 0; owner < owners_; ++owner, to += area_bytes(job)) {
    if (owner != index_) put(call_->in, elements(job, owner));
  }
}

// The results of all owners.
void Inside::read_stages(const Job& job) {
  const std::size_t element = element_bytes(*call_);
  for (int owner = 0; owner < owners_; ++owner) {
    const Range slice = elements(job, owner);
    if (owner == index_ || slice.count == 0) continue;
    copy_.cached(static_cast<std::byte*>(call_->out) + slice.offset * element, stage(owner),
                 slice.count * element);
  }
}

void Inside::find_inputs(const Job& job, const Range& slice) {
  const std::size_t element = element_bytes(*call_);
  const std::size_t offset = slice.offset * element;
  const std::size_t in_stage = static_cast<std::size_t>(index_) * area_bytes(job);
  for (std::size_t i = 0; i < ins_.size(); ++i) {
    if (static_cast<int>(i) == index_) {
      ins_[i] = static_cast<const std::byte*>(call_->in) + offset;
    } else if (reaches_) {
      ins_[i] = find(i, buffers_[i].in) + offset;
    } else {
      ins_[i] = stage(static_cast<int>(i)) + in_stage;
    }
  }
}

// Reduces this slice of all ranks' elements into the owner's output.
void Inside::fold(const Job& job, const Range& slice) {
  if (slice.count == 0) return;  // the buffers of an empty vector may be null
  find_inputs(job, slice);
  std::byte* out = static_cast<std::byte*>(call_->out) + slice.offset * element_bytes(*call_);
  fold_call(*call_, op_, {&out, 1, ins_.data(), ins_.size(), average_}, slice.count);
}

}  // namespace rondo::detail

// The part of a hierarchical all_reduce inside a host.
//
// Some of the ranks are owners: the first of the host, as many as there are rails
// (topology/ring_order.hpp); the first alone, the leader, for few bytes. Each owner has a chunk of
// each piece of the vector (engine/hierarchical.hpp). There are two jobs for each piece: to reduce
// the chunks of all owners over the host's ranks into the owners' outputs, and, when they are the
// sums over all hosts, to spread them to the host's other ranks. All ranks do the jobs in this
// order, so that the host works on one piece while the network carries another:
//
//   reduce 0, reduce 1, spread 0, reduce 2, spread 1, ... , spread of the last but one, of the last
//
// An owner that waits for the network does the next jobs meanwhile, as far as they are allowed: to
// reduce the next piece, and to spread the one before (work()). No ranks wait for each other in a
// circle: before piece k is reduced, only pieces up to k - 2 are spread, and their owners need
// nothing more for these. So the ranks of each host come to the reduction of piece k, and then its
// owners make piece k final.
//
// Where all ranks of the host can reach each other's buffers, an owner reads the others' inputs and
// writes their outputs, with the promises of engine/touching.hpp; the others wait until the owners
// are done. Nobody waits between pieces: the elements of a chunk are read and written by its owner
// alone.
//
// Else data goes through stages, memory in the host's segment into which each rank copies data, and
// from which the others read it. A job takes one pass of the stages, or several: each rank writes
// a part of its stage, all wait for all, then they read. A pass takes at most a quarter of a stage,
// the next one what follows, and from the front again where too little is left. So passes that
// follow each other take different parts, and one wait in each pass is enough: what pass p wrote is
// written over in pass p + 2 at the earliest. By then all ranks have arrived at pass p + 1, and a
// rank arrives there only after it has read the stages of pass p. Small calls go through the whole
// stage, too. Where it is larger than the other cores' own caches, as among few ranks, these have
// mostly let go of a part when it is written again, and it need not be fetched from them.
//
// Example: four ranks, of which 0 and 1 are owners, and a piece of 1024 elements; a quarter of a
// stage holds 256. Rank 0 owns 0-511, rank 1 owns 512-1023. To reduce, each pass has an area of 128
// elements for each owner, so there are four passes: in the first, rank 3 writes its elements 0-127
// and 512-639 to its stage; rank 0 adds 0-127 of all stages, and rank 1 adds 512-639. To spread, an
// owner has a pass for itself: in the first of two passes rank 0 writes 0-255, rank 1 512-767, and
// all read both.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <rondo/call.hpp>
#include <rondo/chunk.hpp>

#include "carrier/presence.hpp"
#include "engine/context.hpp"
#include "engine/learned_stores.hpp"
#include "engine/stage_places.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {

class Inside {
 public:
  explicit Inside(Context& context);

  // A call begins. `op` and `average`: for the reduction inside the host. `owners`: of each host.
  // `crosses`: whether there are other hosts. `most_elems`: of a piece; 0: as many as are
  // spread through the stages in one pass.
  void begin(const Call& call, ReduceOp op, const AverageFactors& average, int owners, bool crosses,
             std::uint64_t most_elems);
  // Whether this rank owns chunks of the call.
  [[nodiscard]] bool owns() const { return index_ < owners_; }
  [[nodiscard]] std::uint64_t pieces() const { return pieces_; }
  // Returns this rank's chunk of piece `piece`.
  [[nodiscard]] Range chunk(std::uint64_t piece) const { return chunk_of(piece, index_); }

  // meet, require_reduced and finish throw Failure. meet waits until all ranks of the host have
  // entered the call, with the same signature. `shown`: what this rank has shown.
  void meet(const ShownCall& shown);
  // Waits until the piece is reduced over the host's ranks.
  void require_reduced(std::uint64_t piece);
  // This rank's chunk of that piece is the sum over all hosts.
  void note_final(std::uint64_t piece) { final_pieces_ = piece + 1; }
  // Does a little of the next job, unless it would have to wait. Returns whether it has done
  // anything.
  bool work();
  // All pieces are final: does the jobs that are left.
  void finish();

 private:
  struct Job {
    bool spreads = false;
    std::uint64_t piece = 0;
  };
  [[nodiscard]] Job job_at(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t jobs() const { return 2 * pieces_; }
  void do_jobs_before(std::uint64_t number);
  void next_pass(const Job& job);

  [[nodiscard]] Range chunk_of(std::uint64_t piece, int owner) const;
  // Returns what the job handles of the owner's chunk in the pass in progress.
  [[nodiscard]] Range elements(const Job& job, int owner) const;
  // At least one, so that in an empty call, too, the ranks wait for each other before and after the
  // owners have received what the other hosts sent.
  [[nodiscard]] std::uint64_t passes_for(const Job& job) const;
  [[nodiscard]] std::uint64_t elems_at_once(const Job& job) const {
    return job.spreads ? elems_spread_ : elems_reduced_;
  }

  // Owners write to all buffers.
  void spread_to_all(const Range& slice);
  [[nodiscard]] std::byte* find(std::size_t index, std::uint64_t location) const;

  // Ranks copy through stages.
  // Returns the part of the stage that the pass in progress takes.
  [[nodiscard]] std::byte* stage(int index) const;
  // Returns the size of the part that each owner has, in a pass that reduces, of each stage.
  [[nodiscard]] std::size_t area_bytes(const Job& job) const;
  void place_pass(const Job& job);
  void write_stage(const Job& job);
  void read_stages(const Job& job);
  void arrive();
  // A rank of the host that has not arrived where this one has.
  [[nodiscard]] std::optional<int> missing() const;

  // Where owner `index_` finds the elements of the ranks' inputs from `slice` on.
  void find_inputs(const Job& job, const Range& slice);
  void fold(const Job& job, const Range& slice);

  Context& context_;
  Wiring& wiring_;
  CopyKernel copy_;
  LearnedCopy copy_to_stage_;
  LearnedCopy copy_to_outputs_;  // of the other ranks, where owners reach them
  int index_ = 0;                // this rank's among those of its host
  std::uint64_t passes_ = 0;     // of stages at which this rank has arrived, on its communicator
  StagePlaces places_;
  std::size_t pass_begin_ = 0;  // of the pass in progress, in all stages
  // Indexed by the rank's number among those of its host.
  std::vector<BufferLocations> buffers_;
  std::vector<const std::byte*> ins_;
  // The members below belong to the call in progress.
  const Call* call_ = nullptr;
  ReduceOp op_ = ReduceOp::sum;
  AverageFactors average_;
  int owners_ = 1;
  std::uint64_t elems_reduced_ = 1;  // of each owner's chunk, in one pass
  std::uint64_t elems_spread_ = 1;
  std::uint64_t most_elems_ = 1;  // of a piece
  std::uint64_t pieces_ = 1;
  bool reaches_ = false;            // owners reach all buffers of the host's ranks
  std::uint64_t final_pieces_ = 0;  // that can be spread
  std::uint64_t job_ = 0;           // in progress
  std::uint64_t pass_ = 0;          // of that job
  bool arrived_ = false;            // this rank's stage is written, and not all stages are read
};

}  // namespace rondo::detail

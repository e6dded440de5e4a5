// The part of a hierarchical all_reduce inside a host.
//
// Some of the ranks are owners: the first of the host, as many as there are rails
// (topology/ring_order.hpp); the first alone, the leader, for few bytes. Each owner has a chunk of
// the vector. Its sum over the host's ranks is reduced into the owner's output; then the owners of
// that chunk on all hosts make it the sum over all hosts; then it is spread to the host's other
// ranks. All of that goes on at once, so that the network does not wait for the host, nor the host
// for the network: cell by cell, as engine/cells.hpp says. The owner waits for the network in
// OwnerPort, and does what jobs it can in those waits (work()).
//
// Where all ranks of the host can reach each other's buffers, an owner reads the others' inputs and
// writes their outputs, with the promises of engine/touching.hpp; the others wait until the owners
// are done.
//
// Else data goes through stages, memory in the host's segment into which each rank copies data, and
// from which the others read it. A job goes through one window of the stages, or several: each rank
// writes its stage, all wait for all, then they read. A rank has two stages and takes them in turn,
// so that one wait in each window is enough: it writes the stage of window w again for window w
// + 2. By then all ranks have arrived at window w + 1, and a rank arrives there only after it has
// read the stages of window w.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <rondo/call.hpp>
#include <rondo/chunk.hpp>

#include "carrier/presence.hpp"
#include "engine/cells.hpp"
#include "engine/context.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {

class Inside {
 public:
  explicit Inside(Context& context);

  // A call begins. `op` and `average`: for the reduction inside the host. `owners`: of each host.
  // `rail`: how the rail's ring cuts an owner's chunk, where `count` need not be set; if nothing
  // does, the chunk goes between hosts as a whole.
  void begin(const Call& call, ReduceOp op, const AverageFactors& average, int owners,
             const std::optional<Slicing>& rail);
  // Whether this rank owns a chunk of the call, and which.
  [[nodiscard]] bool owns() const { return index_ < owners_; }
  [[nodiscard]] Range chunk() const { return cells_.chunk(index_); }

  // meet, require_reduced and finish throw Failure. meet waits until all ranks of the host have
  // entered the call, with the same signature. `shown`: what this rank has shown.
  void meet(const ShownCall& shown);
  // Waits until the rail may read this slice, of part `part` of the rank's chunk.
  void require_reduced(int part, const Range& slice);
  // The rail has made this slice final.
  void note_final(int part, const Range& slice);
  // Does a little of the next job, unless it would have to wait. Returns whether it has done
  // anything.
  bool work();
  // The rail is through with the whole chunk: does the jobs that are left.
  void finish();

 private:
  void do_jobs_before(std::uint64_t number);
  void do_window(const Job& job);
  void next_window(const Job& job);
  [[nodiscard]] Range elements(const Job& job, int owner) const {
    return cells_.elements(job, owner, window_);
  }

  // Owners write to all buffers.
  void spread_to_all(const Range& slice);
  [[nodiscard]] std::byte* find(std::size_t index, std::uint64_t location) const;

  // Ranks copy through stages.
  [[nodiscard]] std::byte* stage(int index, std::uint64_t window) const;
  void write_stage(const Job& job);
  void read_stages(const Job& job);
  void arrive();
  // A rank of the host that has not arrived where this one has.
  [[nodiscard]] std::optional<int> missing() const;

  // Where owner `index_` finds the elements of the ranks' inputs from `slice` on.
  void find_inputs(const Range& slice);
  void fold(const Range& slice);

  Context& context_;
  Wiring& wiring_;
  CopyKernel copy_;
  int index_ = 0;              // this rank's among those of its host
  std::uint64_t windows_ = 0;  // of stages at which this rank has arrived, on its communicator
  // Indexed by the rank's number among those of its host.
  std::vector<BufferLocations> buffers_;
  std::vector<const std::byte*> ins_;
  // The members below belong to the call in progress.
  const Call* call_ = nullptr;
  ReduceOp op_ = ReduceOp::sum;
  AverageFactors average_;
  int owners_ = 1;
  Cells cells_;
  bool reaches_ = false;           // owners reach all buffers of the host's ranks
  std::uint64_t final_cells_ = 0;  // that can be spread
  std::uint64_t job_ = 0;          // in progress
  std::uint64_t window_ = 0;       // of that job
  bool arrived_ = false;           // this rank's stage is written, and not all stages are read
};

}  // namespace rondo::detail

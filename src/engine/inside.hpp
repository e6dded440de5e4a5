// The part of a hierarchical all_reduce inside a host, among ranks whose buffers the others cannot reach: through stages,
// memory in the host's segment into which each rank copies data, and from which the others read it.
//
// Some of the ranks are owners: the first of the host, as many as there are rails (topology/ring_order.hpp). Each owner
// has a chunk of the vector. Its sum over the host's ranks is reduced into the owner's output; then the rail's ring makes
// it the sum over all hosts; then it is spread to the host's other ranks. All of that goes on at once, so that the network
// does not wait for the host, nor the host for the network. The rail's ring cuts a chunk into parts, and handles a window
// of each part at a time; the elements of one part in one window are a cell. There are two jobs for each cell: to reduce
// it, in the order in which the ring first reads cells, and to spread it, in the order in which the ring makes them final,
// which is another one. All ranks of a host do the jobs in one same order: some cells are reduced ahead, then one is
// spread, one is reduced, and so on.
//
// A job goes through one window of the stages, or several: each rank writes its stage, all wait for all, then they read. A
// rank has two stages and takes them in turn, so that one wait in each window is enough: it writes the stage of window w
// again for window w + 2. By then all ranks have arrived at window w + 1, and a rank arrives there only after it has read
// the stages of window w.
//
// The owner waits for the network in RailPort, and does what jobs it can in those waits (work()).
//
// Example: two hosts, A and B, of two ranks each, all of them owners; 4096 elements, of which rank 0 of each host owns
// 0-2047. The rail's ring cuts these into two parts, 0-1023 and 1024-2047, and handles 256 elements of each in a window. So
// there are eight cells. Host A sends the second part first: it reduces 1024-1279, 0-255, 1280-1535, 256-511 and so on. As
// soon as 1024-1279 is reduced, rank 0 sends it to B. While the network works on the first two cells, the host reduces the
// next two. 0-255 becomes final first, then 1024-1279; the host spreads them in this order, while the network works on
// 1280-1535 and 256-511.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <rondo/call.hpp>
#include <rondo/chunk.hpp>

#include "carrier/presence.hpp"
#include "engine/failure.hpp"
#include "engine/waiter.hpp"
#include "engine/wiring.hpp"
#include "reduce/kernels.hpp"
#include "schedule/slicing.hpp"

namespace rondo::detail {

class Inside {
 public:
  Inside(Wiring& wiring, Waiter& waiter);

  // Whether this rank owns a chunk, and which.
  [[nodiscard]] bool owns() const { return index_ < owners_; }
  [[nodiscard]] Range chunk(const Call& call) const { return chunk_of(call, index_); }

  // A call begins. `op`: for the reduction inside the host. `rail`: how the rail's ring cuts a chunk; its `count` is set
  // for each owner. Without other hosts, nothing has to be cut for them.
  void begin(const Call& call, ReduceOp op, const Slicing& rail);
  // meet, require_reduced and finish return false if they failed; failure() then says why. meet waits until all ranks of
  // the host have entered the call, with the same signature.
  bool meet(const Signature& signature);
  // Waits until the rail may read this slice, of part `part` of the rank's chunk.
  bool require_reduced(int part, const Range& slice);
  // The rail has made this slice final.
  void note_final(int part, const Range& slice);
  // Does a little of the next job, unless it would have to wait. Returns whether it has done anything.
  bool work();
  // The rail is through with the whole chunk: does the jobs that are left.
  bool finish();
  [[nodiscard]] const Failure& failure() const { return failure_; }
  // In the call that began last.
  [[nodiscard]] std::uint64_t windows_done() const { return windows_ - windows_before_; }

 private:
  // `cell`: its number in the order of its kind of job.
  struct Job {
    bool spreads = false;
    std::uint64_t cell = 0;
  };
  [[nodiscard]] std::uint64_t jobs() const { return 2 * cells_; }
  [[nodiscard]] Job job_at(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t number_of_reduction(std::uint64_t cell) const;
  // Windows of the stages that the job in progress takes.
  [[nodiscard]] std::uint64_t windows_of(const Job& job) const;
  bool do_jobs_before(std::uint64_t number);
  void next_window(const Job& job);

  [[nodiscard]] Range chunk_of(const Call& call, int owner) const;
  // How the rail's ring cuts an owner's chunk.
  [[nodiscard]] Slicing rail_of(int owner) const;
  [[nodiscard]] std::uint64_t rail_window_of(const Slicing& rail, int part,
                                             const Range& slice) const;
  // The elements of an owner's chunk that the job's window in progress handles.
  [[nodiscard]] Range elements(const Job& job, int owner) const;

  [[nodiscard]] std::byte* stage(int index, std::uint64_t window) const;
  void write_stage(const Job& job);
  void read_stages(const Job& job);
  void fold(const Range& slice, std::uint64_t window);
  void arrive();
  // A rank of the host that has not arrived where this one has.
  [[nodiscard]] std::optional<int> missing() const;
  bool wait_failed(int rank, WaitResult result);
  [[nodiscard]] Presence& presence(int rank) const { return wiring_.links.segment->presence(rank); }

  Wiring& wiring_;
  Waiter& waiter_;
  CopyKernel copy_;
  int index_ = 0;                     // this rank's among those of its host
  int owners_ = 1;                    // of each host
  std::uint64_t windows_ = 0;         // at which this rank has arrived, on its communicator
  std::uint64_t windows_before_ = 0;  // before the call that began last
  std::vector<const std::byte*> ins_;
  Failure failure_;
  // Of the call in progress.
  const Call* call_ = nullptr;
  ReduceOp op_ = ReduceOp::sum;
  Slicing rail_;
  int parts_ = 1;                    // of a chunk that have cells of their own
  std::uint64_t cells_ = 0;          // of each owner's chunk
  std::uint64_t ahead_ = 0;          // cells that are reduced before the first is spread
  std::uint64_t final_cells_ = 0;    // that can be spread
  std::uint64_t elems_reduced_ = 0;  // in one window of stages, of each owner's chunk
  std::uint64_t elems_spread_ = 0;
  std::uint64_t job_ = 0;     // in progress
  std::uint64_t window_ = 0;  // of that job
  bool arrived_ = false;      // this rank's stage is written, and not all stages are read
};

}  // namespace rondo::detail

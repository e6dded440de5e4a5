// How a hierarchical all_reduce is cut inside a host, and in which order the host handles the
// pieces.
//
// Each owner has a chunk of the vector. Its rail's ring cuts the chunk into parts, and handles a
// window of each part at a time; the elements of one part in one window are a cell. There are two
// jobs for each cell: to reduce it, in the order in which the ring first reads cells, and to spread
// it, in the order in which the ring makes them final, which is another one. All ranks of a host do
// the jobs in one same order: some cells are reduced ahead, then one is spread, one is reduced, and
// so on.
//
// Example: two hosts, A and B, of two ranks each, all of them owners; 4096 elements, of which rank
// 0 of each host owns 0-2047. The rail's ring cuts these into two parts, 0-1023 and 1024-2047, and
// handles 256 elements of each in a window. So there are eight cells. Host A sends the second part
// first: it reduces 1024-1279, 0-255, 1280-1535, 256-511 and so on. As soon as 1024-1279 is
// reduced, rank 0 sends it to B. While the network works on the first two cells, the host reduces
// the next two. 0-255 becomes final first, then 1024-1279; the host spreads them in this order,
// while the network works on 1280-1535 and 256-511.
#pragma once

#include <cstdint>
#include <optional>

#include <rondo/call.hpp>
#include <rondo/chunk.hpp>

#include "schedule/slicing.hpp"

namespace rondo::detail {

// A job is done in windows of so many elements of each owner's chunk.
struct JobWindows {
  std::uint64_t elems_reduced = 1;
  std::uint64_t elems_spread = 1;
};

// `cell`: its number in the order of its kind of job.
struct Job {
  bool spreads = false;
  std::uint64_t cell = 0;
};

class Cells {
 public:
  Cells() = default;
  // For host number `host` of `hosts`. `rail`: how the rail's ring cuts a chunk; its `count` is set
  // for each owner. Where nothing cuts it, or there are no other hosts, a chunk has no parts.
  Cells(const Call& call, int owners, int host, int hosts, const std::optional<Slicing>& rail,
        const JobWindows& windows);

  // The part of the vector that is this owner's.
  [[nodiscard]] Range chunk(int owner) const;
  // Returns the number of cells of each owner's chunk.
  [[nodiscard]] std::uint64_t count() const { return cells_; }

  [[nodiscard]] const JobWindows& at_once() const { return windows_; }
  [[nodiscard]] std::uint64_t jobs() const { return 2 * cells_; }
  [[nodiscard]] Job job_at(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t number_of_reduction(std::uint64_t cell) const;
  // The same on all ranks of the host: for the largest cell of that number. At least one, so that
  // in an empty call, too, the ranks wait for each other before and after the owners have received
  // what the other hosts sent.
  [[nodiscard]] std::uint64_t windows_of(const Job& job) const;
  // The elements of the owner's chunk that the job's window number `window` handles.
  [[nodiscard]] Range elements(const Job& job, int owner, std::uint64_t window) const;

  // The cell with this slice of part `part` of the owner's chunk, in the order of either kind of
  // job.
  [[nodiscard]] std::uint64_t cell_with(bool spreads, int owner, int part,
                                        const Range& slice) const;
  // Whether the slice is the last of its cell. Never, if all cells are spread together when the
  // rail is through.
  [[nodiscard]] bool ends_cell(int owner, int part, const Range& slice) const;
  // The first cell of the window in which this cell is.
  [[nodiscard]] std::uint64_t window_start(std::uint64_t cell) const {
    return cell / parts() * parts();
  }

 private:
  [[nodiscard]] std::uint64_t parts() const { return static_cast<std::uint64_t>(parts_); }
  [[nodiscard]] int place_of(bool spreads, int part) const;
  [[nodiscard]] Slicing rail_of(int owner) const;
  // The elements of each part that one window of the rail handles.
  [[nodiscard]] std::uint64_t cell_elems() const { return rail_.window * rail_.slice_elems; }

  std::uint64_t elems_ = 0;  // of the vector
  std::uint64_t granule_ = 1;
  int owners_ = 1;
  int host_ = 0;
  Slicing rail_;
  JobWindows windows_;
  int parts_ = 1;            // of a chunk that have cells of their own
  std::uint64_t cells_ = 0;  // of each owner's chunk
  std::uint64_t ahead_ = 0;  // cells that are reduced before the first is spread
};

}  // namespace rondo::detail

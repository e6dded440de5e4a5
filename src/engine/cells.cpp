#include "engine/cells.hpp"

#include <algorithm>

#include "schedule/ring_steps.hpp"

namespace rondo::detail {
namespace {

// A chunk of up to so many bytes is one cell: to wait for all ranks of the host at each cell would
// take longer than what goes on at once saves.
constexpr std::size_t kWholeBytes = 8192;

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

Cells::Cells(const Call& call, int owners, int host, int hosts, const std::optional<Slicing>& rail,
             const JobWindows& windows)
    : elems_(call.count),
      granule_(kChunkGranuleBytes / size_of(call.type)),
      owners_(owners),
      host_(host),
      windows_(windows) {
  const std::uint64_t largest = chunk(0).count;
  const bool alone = hosts == 1;
  const bool whole = largest * size_of(call.type) <= kWholeBytes;
  if (rail && !alone && !whole) {
    rail_ = *rail;
    parts_ = static_cast<int>(rail->chunks);
  } else {
    // Alone, a whole number of windows of either kind of job.
    const std::uint64_t elems_alone = static_cast<std::uint64_t>(owners) * windows.elems_reduced;
    rail_ = Slicing{.granule = granule_,
                    .slice_elems = alone ? elems_alone : std::max<std::uint64_t>(largest, 1)};
  }
  cells_ = rail_of(0).windows() * parts();
  // The next window's cells are ahead, too, so that the rail goes on while this window's cells are
  // spread.
  ahead_ = parts_ == 1 ? 1 : std::min(2 * parts(), cells_);
}

Range Cells::chunk(int owner) const {
  return chunk_range(elems_, static_cast<std::uint64_t>(owners_), static_cast<std::uint64_t>(owner),
                     granule_);
}

Slicing Cells::rail_of(int owner) const {
  Slicing rail = rail_;
  rail.count = chunk(owner).count;
  return rail;
}

// The first `ahead_` cells are reduced, then one is spread and one reduced in turn, then the last
// `ahead_` are spread.
Job Cells::job_at(std::uint64_t number) const {
  if (number < ahead_) return {false, number};
  const std::uint64_t after = number - ahead_;
  const std::uint64_t pairs = cells_ - ahead_;
  if (after >= 2 * pairs) return {true, after - pairs};
  return after % 2 == 0 ? Job{true, after / 2} : Job{false, ahead_ + after / 2};
}

std::uint64_t Cells::number_of_reduction(std::uint64_t cell) const {
  return cell < ahead_ ? cell : ahead_ + 2 * (cell - ahead_) + 1;
}

std::uint64_t Cells::windows_of(const Job& job) const {
  const std::uint64_t before = job.cell / parts() * cell_elems();
  const std::uint64_t all = rail_of(0).part(0).count;
  const std::uint64_t count = before < all ? std::min(cell_elems(), all - before) : 0;
  const std::uint64_t at_once = job.spreads ? windows_.elems_spread : windows_.elems_reduced;
  return std::max<std::uint64_t>(divide_up(count, at_once), 1);
}

// Where a part's cell is among those of its window: the ring's step i of a window sends or reduces
// part p - 1 - i, on host p, and the parts become final in the order p, p - 1, and so on
// (schedule/ring_steps.hpp). The same function also says which part is at a place.
int Cells::place_of(bool spreads, int part) const {
  return ring::wrap(host_ - (spreads ? 0 : 1) - part, parts_);
}

Range Cells::elements(const Job& job, int owner, std::uint64_t window) const {
  const int part = place_of(job.spreads, static_cast<int>(job.cell % parts()));
  const Range all = rail_of(owner).part(static_cast<std::uint64_t>(part));
  const std::uint64_t at_once = job.spreads ? windows_.elems_spread : windows_.elems_reduced;
  const std::uint64_t cell = job.cell / parts() * cell_elems();
  const std::uint64_t end = std::min(cell + cell_elems(), all.count);
  const std::uint64_t begin = std::min(cell + window * at_once, end);
  return {chunk(owner).offset + all.offset + begin, std::min(at_once, end - begin)};
}

std::uint64_t Cells::cell_with(bool spreads, int owner, int part, const Range& slice) const {
  if (parts_ == 1) return 0;
  const Range all = rail_of(owner).part(static_cast<std::uint64_t>(part));
  const std::uint64_t window = (slice.offset - all.offset) / cell_elems();
  return window * parts() + static_cast<std::uint64_t>(place_of(spreads, part));
}

bool Cells::ends_cell(int owner, int part, const Range& slice) const {
  if (parts_ == 1) return false;
  const Range all = rail_of(owner).part(static_cast<std::uint64_t>(part));
  const std::uint64_t window = (slice.offset - all.offset) / cell_elems();
  const std::uint64_t end = slice.offset + slice.count - all.offset;
  return end >= std::min((window + 1) * cell_elems(), all.count);
}

}  // namespace rondo::detail

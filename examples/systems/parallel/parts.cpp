#include "parts.hpp"

#include <algorithm>
#include <vector>

namespace lenet::systems {
namespace {

// Columns `range` of a matrix of `columns` columns, and a matrix of these alone.
template <class Whole, class Mine, class Copy>
void for_each_row(Whole whole, Mine mine, std::size_t columns, const PartRange& range,
                  const Copy& copy) {
  for (std::size_t row = 0; row < whole.size() / columns; ++row) {
    copy(whole.subspan(row * columns + range.first, range.count),
         mine.subspan(row * range.count, range.count));
  }
}

}  // namespace

PartRange part_of(std::size_t elements, int part, int parts) {
  const auto number = static_cast<std::size_t>(part);
  const auto all = static_cast<std::size_t>(parts);
  const std::size_t first = number * elements / all;
  return {first, (number + 1) * elements / all - first};
}

void Parts::sum(std::span<float> values) {
  comm_.all_reduce(values);
  const auto all = static_cast<std::size_t>(parts());
  sent_bytes_ += 2 * (all - 1) * values.size_bytes() / all;
}

void Parts::gather_columns(std::span<const float> mine, std::span<float> whole,
                           std::size_t columns) {
  const std::size_t rows = whole.size() / columns;
  std::vector<std::size_t> counts;
  for (int part = 0; part < parts(); ++part) {
    counts.push_back(rows * part_of(columns, part, parts()).count);
  }
  gathered_.resize(whole.size());
  comm_.all_gather_v(mine, gathered_, counts);
  const auto next = static_cast<std::size_t>((part() + 1) % parts());
  // By the ring a rank sends all but the part of the rank after it.
  sent_bytes_ += (whole.size() - counts[next]) * sizeof(float);
  std::span<const float> from = gathered_;
  for (int part = 0; part < parts(); ++part) {
    const std::size_t count = counts[static_cast<std::size_t>(part)];
    for_each_row(whole, from.first(count), columns, part_of(columns, part, parts()),
                 [](std::span<float> to, std::span<const float> row) {
                   std::copy(row.begin(), row.end(), to.begin());
                 });
    from = from.subspan(count);
  }
}

void Parts::take_columns(std::span<const float> whole, std::span<float> mine,
                         std::size_t columns) const {
  for_each_row(whole, mine, columns, part_of(columns, part(), parts()),
               [](std::span<const float> row, std::span<float> to) {
                 std::copy(row.begin(), row.end(), to.begin());
               });
}

void Parts::sendrecv(std::span<const float> out, std::span<float> in, int with) {
  comm_.sendrecv(out, with, in, with);
  sent_bytes_ += out.size_bytes();
}

}  // namespace lenet::systems

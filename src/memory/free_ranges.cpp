#include "memory/free_ranges.hpp"

#include <algorithm>
#include <iterator>

namespace rondo::detail {

void FreeRanges::remove(Place range) {
  by_size_.erase({range->second, range->first});
  bytes_ -= range->second;
  by_place_.erase(range);
}

void FreeRanges::add(ByteRange range) {
  if (range.bytes == 0) return;
  const auto next = by_place_.lower_bound(range.offset);
  if (next != by_place_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == range.offset) {
      range = {before->first, before->second + range.bytes};
      remove(before);
    }
  }
  if (next != by_place_.end() && next->first == range.end()) {
    range.bytes += next->second;
    remove(next);
  }
  by_place_.emplace(range.offset, range.bytes);
  by_size_.emplace(range.bytes, range.offset);
  bytes_ += range.bytes;
}

std::optional<std::size_t> FreeRanges::take(std::size_t bytes, std::size_t alignment) {
  for (auto size = by_size_.lower_bound({bytes, 0}); size != by_size_.end(); ++size) {
    const ByteRange range{size->second, size->first};
    const std::size_t address = origin_ + range.offset;
    const std::size_t begin = range.offset + (alignment - address % alignment) % alignment;
    if (begin + bytes > range.end()) continue;
    remove(by_place_.find(range.offset));
    add({range.offset, begin - range.offset});
    add({begin + bytes, range.end() - begin - bytes});
    return begin;
  }
  return std::nullopt;
}

std::optional<ByteRange> FreeRanges::take_of_largest(std::size_t most) {
  if (by_size_.empty()) return std::nullopt;
  const ByteRange range{by_size_.rbegin()->second, by_size_.rbegin()->first};
  const std::size_t left = range.bytes - std::min(range.bytes, most);
  remove(by_place_.find(range.offset));
  add({range.offset, left});
  return ByteRange{range.offset + left, range.bytes - left};
}

}  // namespace rondo::detail

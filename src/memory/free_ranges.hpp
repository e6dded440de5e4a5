// Ranges of bytes that are free, by place and by size. Neighbours become one range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace rondo::detail {

struct ByteRange {
  std::size_t offset = 0;
  std::size_t bytes = 0;

  [[nodiscard]] std::size_t end() const { return offset + bytes; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

class FreeRanges {
 public:
  // `origin`: the address of offset 0, since addresses are aligned, and not offsets.
  explicit FreeRanges(std::size_t origin = 0) : origin_(origin) {}

  // The range overlaps none that is free already.
  void add(ByteRange range);
  // Takes `bytes` bytes that begin at a multiple of `alignment`, out of the smallest range that
  // holds them, and leaves the rest of it. Nothing if there is no such range.
  std::optional<std::size_t> take(std::size_t bytes, std::size_t alignment);
  // Takes the last `most` bytes of the largest range, or all of it if it has fewer; nothing if
  // there is no range.
  std::optional<ByteRange> take_of_largest(std::size_t most);

  [[nodiscard]] std::size_t bytes() const { return bytes_; }  // of all ranges together

 private:
  using Place = std::map<std::size_t, std::size_t>::iterator;
  void remove(Place range);

  std::size_t origin_;
  std::map<std::size_t, std::size_t> by_place_;            // offset to bytes
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // bytes and offset
  std::size_t bytes_ = 0;
};

}  // namespace rondo::detail

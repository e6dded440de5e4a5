// Where the passes of a host's ranks lie in their stages: one after the other, and from the front
// again where too little is left. Each rank computes the same places.
//
// Passes that follow each other do not overlap. Example: a stage of 1024 bytes, passes of 256, 192
// and 256 bytes again and again. They lie at 0, 256, 448, 704, 0 (960 would leave 64), 256, ...
#pragma once

#include <cassert>
#include <cstddef>

namespace rondo::detail {

// A pass takes at most one of so many parts of a stage. Three would do: a pass that begins at the
// front lies before the last one, which ended in the last third and began in the last two.
inline constexpr std::size_t kStageParts = 4;

class StagePlaces {
 public:
  // Returns where the next pass begins, in stages of `stage_bytes`.
  std::size_t next(std::size_t pass_bytes, std::size_t stage_bytes) {
    assert(pass_bytes <= stage_bytes / kStageParts);
    const std::size_t begin = end_ + pass_bytes <= stage_bytes ? end_ : 0;
    end_ = begin + pass_bytes;
    return begin;
  }

 private:
  std::size_t end_ = 0;  // of the last pass
};

}  // namespace rondo::detail

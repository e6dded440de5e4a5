// What a worker asks of a server: a request, then, for some kinds, a shard's elements; the server
// answers some of them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace lenet::systems {

struct Request {
  enum Kind : std::uint32_t {
    set,   // elements follow
    read,  // the answer: elements
    pull,  // likewise
    push,  // elements follow
    take,  // the answer: a number below `argument`, or `argument` if there is none left
    done,  // the last one
  };
  Kind kind = done;
  std::uint32_t argument = 0;  // of push: the scale, a float

  [[nodiscard]] float scale() const { return std::bit_cast<float>(argument); }
};

// As a message: the kind and the argument.
using RequestMessage = std::array<std::uint32_t, 2>;

}  // namespace lenet::systems

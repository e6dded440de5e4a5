// What the ranks of a bootstrap do together while links are made.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "base/put.hpp"
#include "bootstrap/bootstrap.hpp"
#include "carrier/memory.hpp"

namespace rondo::detail {

struct SharedMemory {
  Mapping mapping;                   // null where it could not be had, or was not wanted
  std::vector<bool> mapped;          // by rank
  std::vector<std::string> reasons;  // by rank: why it is not
};

// One shared memory object for the ranks that name the same `leader`, made by that rank, so that its
// name is gone when all have mapped it or failed to. Collective over all ranks. A leader that cannot
// make it is an error of all (TransportError); a rank that cannot map it is not.
SharedMemory share_memory(Bootstrap& bootstrap, int leader, bool wanted, std::size_t bytes);

// Whatever failed on one rank becomes an error of all, so that nobody waits for a rank that has given
// up: throws E with the lowest such rank's text. Collective.
template <class E>
void agree(Bootstrap& bootstrap, const std::string& error) {
  struct Text {
    std::array<char, 768> text{};
  };
  Text mine;
  put(mine.text, error);
  const std::vector<Text> all = bootstrap.exchange(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].text[0] != '\0') {
      throw E("rank " + std::to_string(rank) + ": " + all[rank].text.data());
    }
  }
}

}  // namespace rondo::detail

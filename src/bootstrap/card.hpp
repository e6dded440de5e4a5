// What rank 0 shows to the other ranks, so that they find it: in a file of a shared folder, or by MPI.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rondo::detail {

struct Card {
  std::string boot;   // of rank 0's machine: on the same one, loopback addresses lead to it
  std::string token;  // a secret of this run alone: whoever may read the card may join
  std::vector<std::string> addresses;
  std::uint16_t port = 0;
};

std::string to_text(const Card& card);
// Throws UsageError for a text that is not a whole card, as a file may be that is still being written.
Card parse_card(const std::string& text);

}  // namespace rondo::detail

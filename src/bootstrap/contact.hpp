// What rank 0 publishes, so that the other ranks can connect to it: in a file of a shared folder,
// or by MPI.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rondo::detail {

struct Contact {
  std::string boot;   // of rank 0's machine: on the same one, loopback addresses lead to it
  std::string token;  // a secret of this run alone: whoever may read the contact may join
  std::vector<std::string> addresses;
  std::uint16_t port = 0;
};

std::string to_text(const Contact& contact);
// Throws UsageError for an incomplete text, as that of a file which is still being written.
Contact parse_contact(const std::string& text);

}  // namespace rondo::detail

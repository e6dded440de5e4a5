// Makes memory that the ranks of a host share.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "memory/shared_memory.hpp"

namespace rondo::detail {

struct SharedMemory {
  SharedObject object;       // its mapping is null if it could not be made, or was not wanted
  std::vector<bool> mapped;  // by rank
  std::vector<std::string> reasons;  // by rank: why it is not
};

// Makes one piece of shared memory for the ranks that name the same `leader`. That rank makes it,
// and hands it to the others as an open file. Collective over all ranks. If a leader cannot make
// it, all ranks throw TransportError; if a rank cannot map it, none throws for that. The pages of
// the first `reserved_bytes` are reserved here.
SharedMemory share_memory(Bootstrap& bootstrap, int leader, bool wanted, std::size_t bytes,
                          std::size_t reserved_bytes);

}  // namespace rondo::detail

// Where the ranks of a communicator meet, as a text of 128 bytes that the program carries from the
// process that made it to the others.
#pragma once

#include <string>

#include "adapters/nccl/interface.hpp"

namespace rondo::nccl_programs {

struct MeetingPlace {
  std::string url;
  std::string secret;
};

// A place of this process's host, where rank 0 must then be.
ncclUniqueId make_unique_id();
MeetingPlace parse(const ncclUniqueId& id);
// Rank 0 has met the others there, so the port need not be kept any more.
void release_port(const MeetingPlace& place);

}  // namespace rondo::nccl_programs

// Hands files from every rank of a host to every other.
#pragma once

#include <functional>
#include <vector>

#include "base/file_descriptor.hpp"
#include "bootstrap/bootstrap.hpp"

namespace rondo::detail {

// Calls `take` with the file of each other rank of `sharing`, the ranks of this rank's host, which
// all bring one; in any order. Collective over all ranks. A file is missing if a rank could not
// hand it over. Throws TransportError on all ranks alike; `take` must not throw.
void share_files(Bootstrap& bootstrap, const std::vector<int>& sharing, const FileDescriptor& mine,
                 const std::function<void(const FileDescriptor&)>& take);

}  // namespace rondo::detail

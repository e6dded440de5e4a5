// A folder that all ranks share, which may be on NFS: rank 0 leaves a contact there (contact.hpp),
// and the others connect to the addresses that it names. The file system must be able to rename a
// file; nothing is locked.
//
// A contact of an earlier run may still be there, if its rank 0 was killed. Nobody listens at its
// addresses any more, or a process that does not know its token; so a rank reads the contact again
// until it meets a rank 0 that knows it.
#pragma once

#include <memory>
#include <string>

#include <rondo/options.hpp>

#include "bootstrap/meeting_point.hpp"

namespace rondo::detail {

// `network` has its settings from the environment already. Throws UsageError if it is no folder.
std::unique_ptr<MeetingPoint> meet_in_folder(const std::string& folder, std::string run,
                                             const NetworkOptions& network);

}  // namespace rondo::detail

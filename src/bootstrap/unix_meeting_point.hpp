// A meeting point for the processes of one user on one host: a Unix socket at a path.
#pragma once

#include <memory>
#include <string>

#include "bootstrap/meeting_point.hpp"

namespace rondo::detail {

// Throws UsageError for a path that a socket cannot have.
std::unique_ptr<MeetingPoint> meet_at_path(const std::string& path, std::string run = {});

}  // namespace rondo::detail

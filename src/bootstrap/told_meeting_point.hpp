// A meeting point for ranks that can exchange blobs already: by these rank 0 sends the others its
// contact (contact.hpp).
#pragma once

#include <memory>
#include <string>

#include "bootstrap/bootstrap.hpp"
#include "bootstrap/meeting_point.hpp"

namespace rondo::detail {

// Collective: rank 0's part is made when it listens, or when the meeting point is destroyed.
// `interface`: where rank 0 listens; empty: at all of this machine's.
std::unique_ptr<MeetingPoint> meet_where_told(Bootstrap& ranks, const std::string& interface);

}  // namespace rondo::detail

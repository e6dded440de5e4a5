// A TCP address at which rank 0 listens.
#pragma once

#include <memory>

#include <rondo/options.hpp>

#include "bootstrap/meeting_point.hpp"
#include "bootstrap/store_url.hpp"

namespace rondo::detail {

// `network` has its settings from the environment already. Throws UsageError.
std::unique_ptr<MeetingPoint> meet_at_address(const TcpUrl& url, const NetworkOptions& network);

}  // namespace rondo::detail

// A TCP address at which rank 0 listens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rondo/options.hpp>

#include "bootstrap/meeting_point.hpp"
#include "bootstrap/store_url.hpp"

namespace rondo::detail {

// `ports`: one of which rank 0 takes, the URL's first; none: the URL's. `run`: whom they belong to;
// empty if nobody names it. `network` has its settings from the environment already. Throws
// UsageError.
std::unique_ptr<MeetingPoint> meet_at_address(const TcpUrl& url, std::vector<std::uint16_t> ports,
                                              std::string run, const NetworkOptions& network);

}  // namespace rondo::detail

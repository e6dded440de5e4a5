// A meeting point at a TCP address.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rondo/options.hpp>

#include "bootstrap/meeting_point.hpp"
#include "bootstrap/store_url.hpp"

namespace rondo::detail {

// Rank 0 takes one of `ports`, the first of which is the URL's, or the URL's if there are none.
// `run`: the run that they belong to; empty if nobody names it. `network` has its settings from the
// environment already. Throws UsageError.
std::unique_ptr<MeetingPoint> meet_at_address(const TcpUrl& url, std::vector<std::uint16_t> ports,
                                              std::string run, const NetworkOptions& network);

}  // namespace rondo::detail

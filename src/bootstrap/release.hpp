// Checks that ranks that join have one release of Rondo: what they send each other, and what lies
// in memory that they share, is the same only within a release.
#pragma once

#include <string_view>

#include <rondo/version.hpp>

#include "bootstrap/bootstrap.hpp"

namespace rondo::detail {

// The version, and the number of the protocol, which is raised with every change of what ranks say
// to each other or share.
inline constexpr std::string_view kRelease = RONDO_VERSION "/3";

// The first exchange of all ranks: its form is the same in all releases, so that every rank gets
// the same UsageError, which names both releases, where two differ. Collective.
void require_one_release(Bootstrap& bootstrap);

}  // namespace rondo::detail

// Measures the links between hosts.
#pragma once

#include "carrier/messenger.hpp"
#include "joining/link_probe.hpp"

namespace rondo::detail {

// Exchanges a message with each of both ranks, kNoLink where there is none. Throws TransportError with the ranks from which none
// has come; else as probe_links().
void greet(Messenger& messenger, int next, int prev);

// Over `messenger`, by which nothing else is under way. After a failure messages may still be on their way: then the
// messenger must be left as it is for ever. Throws TransportError.
LinkFacts probe_links(Messenger& messenger, int next, int prev);

}  // namespace rondo::detail

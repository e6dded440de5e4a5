// Measures links between hosts, once while ranks join, to choose slot sizes.
#pragma once

#include <functional>

#include "base/link_facts.hpp"
#include "net/messenger.hpp"

namespace rondo::detail {

inline constexpr int kNoLink = -1;

// Measures this rank's link to `next` and that from `prev`, each kNoLink where shared memory
// carries it. Collective over the ranks: both ends of a link know of it.
using LinkProbe = std::function<LinkFacts(int next, int prev)>;

// Exchanges a message with each of both ranks, kNoLink where there is none. Throws TransportError
// with the ranks from which none has come; else as probe_links().
void greet(Messenger& messenger, int next, int prev);

// A LinkProbe over `messenger`, by which nothing else is under way. After a failure messages may
// still be on their way: then the messenger must be left as it is for ever. Throws TransportError.
LinkFacts probe_links(Messenger& messenger, int next, int prev);

}  // namespace rondo::detail

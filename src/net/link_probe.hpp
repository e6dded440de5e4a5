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

// Exchanges a message with both ranks; kNoLink stands for none. Throws TransportError that names
// the ranks from which no message has come; else this is as probe_links().
void greet(Messenger& messenger, int next, int prev);

// Measures as a LinkProbe does, over `messenger`, by which nothing else is under way. After a
// failure messages may still be on their way: then the messenger must never be destroyed. Throws
// TransportError.
LinkFacts probe_links(Messenger& messenger, int next, int prev);

}  // namespace rondo::detail

// How fast the link between two hosts is, as it was measured when ranks joined.
#pragma once

namespace rondo::detail {

struct LinkFacts {
  double latency_us = 0;    // one way, to the next rank; 0: no such link
  double bytes_per_us = 0;  // to the next rank; 0: no such link
};

}  // namespace rondo::detail

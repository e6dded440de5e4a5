// What a job's hosts and links are like, as far as the time of a call depends on it.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/cost_model.hpp"

namespace rondo::sim {

struct Network {
  int ranks_per_host = 1;
  // Parameter servers, each beside a rank and spread over the hosts; 0: as many as ranks.
  int servers = 0;
  // Of a host's link, each way, which its ranks share; and how long a message takes on it without
  // bytes.
  double link_bytes_per_us = 117;
  double latency_us = 30;
  // After a pause, a link carries so many bytes at once that it could have carried meanwhile: a
  // token bucket, as of the test hosts.
  double burst_bytes = 0;
  // By so much, on average, a message is late, exponentially distributed.
  double jitter_us = 0;
  // What a rank computes: for each slice that it sends or receives, and for its bytes.
  double slice_us = detail::kSliceNs / 1e3;
  double reduce_bytes_per_us = 1e6 / detail::kReducePsPerByte;
  double copy_bytes_per_us = 1e6 / detail::kCopyPsPerByte;
};

// Reads what write_network() wrote: all of Network but `servers`. Throws std::runtime_error that
// says what is wrong.
Network read_network(const std::string& file);
nlohmann::json json_of(const Network& network);
void write_network(const std::string& file, const Network& network);

}  // namespace rondo::sim

// Times one collective at one size, and checks its result.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <rondo/communicator.hpp>
#include <string>
#include <vector>

#include "bench/perf/options.hpp"

namespace rondo::perf {

// For comparison: returns a function that makes the same call with another library; nothing where
// that library lacks the type or size.
using Peer = std::function<std::optional<std::function<void()>>(const Call&)>;

// By --algo value; a peer that is null or missing cannot be measured.
using Peers = std::map<std::string, Peer>;

struct Timing {
  double min_us = 0;
  double median_us = 0;
  double p99_us = 0;
  double mean_us = 0;       // of all calls, on the rank where it is the greatest; see summarise()
  double use_us = 0;        // median of the call and of reading its result; 0: not measured
  std::uint64_t wrong = 0;  // elements, over all ranks
};

struct Row {
  std::string algo;
  std::string used;  // the algorithm that carried it out; empty for other libraries
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  Timing out_of_place;
  std::optional<Timing> in_place;  // nothing where a peer cannot work in place
};

// Collective: every rank of `comm` calls it and gets the same row; nothing where `algo` or `peer`
// cannot make the call.
std::optional<Row> measure(Communicator& comm, const Options& options, const std::string& algo,
                           std::uint64_t count, const Peer& peer);

// Whether the call may not have its result where its input is.
bool never_in_place(Collective op);
// What `rank` does in a timed call. `send` stands for a message from rank 0 to rank 1 and one of
// the same size back.
std::vector<Call> calls_of_rank(const Call& call, int rank);
// Of `send`: half of the time of a message and its answer.
Timing one_way(Timing timing);

// How many iterations to time of a call that took `one_us`; the same number on all ranks.
// Collective.
int iterations_for(Communicator& comm, const Options& options, double one_us);

// The time of an iteration is the slowest rank's, except for the mean. Ranks that call one after
// the other without a barrier may take turns in waiting: then each iteration is long on some rank,
// and only the mean tells how many calls fit in a second. Collective.
Timing summarise(Communicator& comm, std::vector<double>& times, std::uint64_t wrong);

std::uint64_t wrong_elements(const std::vector<Row>& rows);

// Bytes a second that each link must carry, as a multiple of bytes / time.
double bus_factor(Collective op, int ranks);

}  // namespace rondo::perf

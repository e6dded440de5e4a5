// The table and the JSON file of rondo-perf.
#pragma once

#include <rondo/communicator.hpp>
#include <vector>

#include "bench/perf/measure.hpp"

namespace rondo::perf {

void print_header(const Options& options, int ranks);
void print_row(const Options& options, const Row& row, int ranks);
// What the run ran on, and which carriers and devices joined the ranks.
void print_summary(const Topology& topology, const std::vector<Row>& rows);
void write_json(const Options& options, const Topology& topology, const std::vector<Row>& rows,
                int ranks);

}  // namespace rondo::perf

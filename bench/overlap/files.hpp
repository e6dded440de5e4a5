// The JSON files of rondo-overlap: models that it reads, rows that it writes.
#pragma once

#include <string>
#include <vector>

#include "bench/overlap/model.hpp"
#include "bench/overlap/options.hpp"
#include "bench/overlap/player.hpp"

namespace rondo::overlap {

// Reads a JSON file: [{"name": "conv1", "count": 9408, "work": 118013952}, ...]. A missing "work"
// is set to the count. Throws std::runtime_error that says what is wrong.
Model read_model(const std::string& file);

// Writes options.json. Throws std::runtime_error if the file cannot be written.
void write_rows(const Options& options, const std::vector<Row>& rows, int ranks);

}  // namespace rondo::overlap

// The JSON files of rondo-overlap: models that it reads, rows that it writes.
#pragma once

#include <string>
#include <vector>

#include "bench/overlap/model.hpp"
#include "bench/overlap/options.hpp"
#include "bench/overlap/player.hpp"

namespace rondo::overlap {

// From a JSON file: [{"name": "conv1", "count": 9408, "work": 118013952}, ...]; without "work", the count is
// taken for it. Throws std::runtime_error that says what is wrong.
Model read_model(const std::string& file);

// To the file that `options` name. Throws std::runtime_error where it cannot be written.
void write_rows(const Options& options, const std::vector<Row>& rows, int ranks);

}  // namespace rondo::overlap

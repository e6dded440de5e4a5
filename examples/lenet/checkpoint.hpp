// A file from which training goes on: CBOR with the model's name, the seed, batch size,
// normalisation, strategy and number of samples, the epochs and steps done, the parameters and
// statistics as bytes of floats of this machine, and the XXH3 of all of that. There is nothing else
// to keep: the rate follows from the step, the order of the samples from seed and epoch.
#pragma once

#include <optional>

#include "options.hpp"
#include "trainer.hpp"

namespace lenet {

// What options.checkpoint holds; nothing where there is no such file. Throws std::runtime_error if
// the file is damaged, of another model, seed, batch size, normalisation or strategy, or has as
// many epochs as are asked for.
std::optional<TrainingState> read_checkpoint(const Options& options);

// Replaces the file in one step. Throws std::runtime_error where it cannot be written.
void write_checkpoint(const Options& options, const TrainingState& state);

}  // namespace lenet

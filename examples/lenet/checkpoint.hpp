// A file from which training goes on: CBOR with the model's name, the seed, batch size,
// normalisation, strategy and number of samples, the epochs and steps done, the parameters and
// statistics as bytes of floats of this machine, and the XXH3 of all of that. There is nothing else
// to keep: the rate follows from the step, the order of the samples from seed and epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer.hpp"

namespace lenet {

// What must be the same where a training goes on.
struct Identity {
  std::string model;
  std::uint64_t seed = 1;
  std::size_t batch_size = 256;
  std::string batch_norm = "rank";      // over whose samples
  std::string strategy = "all-reduce";  // how ranks exchange gradients
};

// What the file holds; nothing where there is no such file. Throws std::runtime_error if the file
// is damaged, of another identity, or has as many epochs as are asked for.
std::optional<TrainingState> read_checkpoint(const std::string& file, const Identity& identity,
                                             int epochs);

// Replaces the file in one step. Throws std::runtime_error where it cannot be written.
void write_checkpoint(const std::string& file, const Identity& identity,
                      const TrainingState& state);

}  // namespace lenet

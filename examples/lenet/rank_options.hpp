// What the options of the command line mean to one rank.
#pragma once

#include <optional>
#include <rondo/communicator.hpp>
#include <rondo/gradient_reducer.hpp>
#include <string>

#include "options.hpp"
#include "tasks.hpp"

namespace lenet {

rondo::GradientOptions gradient_options(const Options& options);

const Task& task_of(const Options& options);

// Throws DataError.
Dataset read_data(const Options& options);

// Empty where another strategy, or MPI, is to be used.
std::optional<rondo::Algorithm> algorithm_of(const Options& options);

// The training options of one rank. Collective.
TrainingOptions training_of(const Options& options, rondo::Communicator& comm);

// Throws if the file cannot be written; called before the work is done. An empty name means no
// file.
void require_writable(const std::string& file);

}  // namespace lenet

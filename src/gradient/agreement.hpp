// Ranks compare the arguments that their reducers were made with.
#pragma once

#include <string>
#include <vector>

#include <rondo/communicator.hpp>
#include <rondo/gradients.hpp>

namespace rondo::detail {

// Collective. Throws UsageError on all ranks: with the `objection` of the lowest rank that has one, else with the
// first line that differs from rank 0's.
void require_equal_lines(Communicator& communicator, const std::string& objection,
                         const std::vector<std::string>& lines);

// `text` of rank `root`, on all ranks. Collective.
std::string shared_text(Communicator& communicator, std::string text, int root);

// What is wrong with the arguments on this rank alone; empty if nothing is.
std::string objection_to(const std::vector<Parameter>& parameters, const GradientOptions& options);
// A line for each option and parameter that must be equal.
std::vector<std::string> lines_of(const std::vector<Parameter>& parameters,
                                  const GradientOptions& options);

// Compares on all ranks what a reducer is made with. `objection`: why this rank's driver cannot use it, if there is
// a reason beyond those of objection_to. Collective; throws UsageError on all ranks.
void require_same_model(Communicator& communicator, const std::vector<Parameter>& parameters,
                        const GradientOptions& options, std::string objection);

}  // namespace rondo::detail

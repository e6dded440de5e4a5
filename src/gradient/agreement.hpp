// Ranks compare the arguments that their reducers were made with.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rondo/communicator.hpp>
#include <rondo/gradients.hpp>

namespace rondo::detail {

// Collective. Throws UsageError on all ranks: with the `objection` of the lowest rank that has one,
// else with the first line that differs from rank 0's.
void require_equal_lines(Communicator& communicator, const std::string& objection,
                         const std::vector<std::string>& lines);

// `text` of rank `root`, on all ranks. Collective.
std::string shared_text(Communicator& communicator, std::string text, int root);

// Copies bytes of parameters to host memory.
using CopyToHost = void (*)(void* to, const void* from, std::size_t bytes);

// Compares on all ranks what a reducer is made with, and the values that parameters give to be
// compared. `objection`: a reason beside the arguments why this rank cannot make the reducer;
// empty if there is none. Collective; throws UsageError on all ranks.
void require_same_model(Communicator& communicator, const std::vector<Parameter>& parameters,
                        const GradientOptions& options, std::string objection, CopyToHost copy);

}  // namespace rondo::detail

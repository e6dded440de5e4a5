// Which options of rondo-lenet do not go together.
#pragma once

#include "options.hpp"

namespace lenet {

// Throws CLI::ValidationError where an option would be ignored, or contradicts another.
void refuse_contradictions(const Options& options);

}  // namespace lenet

// Which options of rondo-systems do not go together.
#pragma once

#include "options.hpp"

namespace lenet::systems {

// Throws CLI::ValidationError where an option would be ignored, or contradicts another.
void refuse_contradictions(const SystemOptions& options);

}  // namespace lenet::systems

// The end of the exchange of empty messages by which UCX connects ranks.
#pragma once

#include <optional>
#include <vector>

#include "base/deadline.hpp"
#include "net/messenger.hpp"

namespace rondo::detail {

// Returns when all these operations have ended. `lost`: a rank that could not be reached at all.
// Where one rank cannot be reached, the exchange with the others goes on to its end: else these
// would wait for this rank, and name it. Throws ConnectionLost for that rank, or TransportError,
// with the ranks that are missing at `give_up`.
void end_ucx_exchange(Messenger& messenger, std::vector<Pending>& pending,
                      Clock::time_point give_up, std::optional<ConnectionLost> lost);

}  // namespace rondo::detail

#include <utility>
#include <vector>

#include <rondo/start.hpp>

#include "base/environment.hpp"
#include "bootstrap/launchers.hpp"
#include "communicator/from_store.hpp"

namespace rondo {

Communicator from_environment(const CommunicatorOptions& options) {
  const detail::LaunchedRank launched = detail::launched_rank(detail::environment_of_launchers);
  if (launched.size == 1) return std::move(local_group(1, options)[0]);
  return detail::join_at_store(launched, options);
}

std::string launcher() { return detail::launched_rank(detail::environment_of_launchers).launcher; }

}  // namespace rondo

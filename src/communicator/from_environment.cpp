#include <utility>
#include <vector>

#include <rondo/start.hpp>

#include "base/environment.hpp"
#include "bootstrap/launchers.hpp"

namespace rondo {

Communicator from_environment(const CommunicatorOptions& options) {
  const detail::LaunchedRank launched = detail::launched_rank(detail::environment_of_others);
  if (launched.size == 1) return std::move(local_group(1, options)[0]);
  return from_store(launched.url, launched.rank, launched.size, options);
}

std::string launcher() { return detail::launched_rank(detail::environment_of_others).launcher; }

}  // namespace rondo

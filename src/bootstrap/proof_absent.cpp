#include <rondo/errors.hpp>

#include "bootstrap/proof.hpp"

namespace rondo::detail {

bool can_prove() { return false; }

Proof prove(std::string_view /*secret*/, std::span<const std::uint8_t> /*message*/) {
  throw UsageError(
      "this Rondo was built without libsodium, so ranks cannot join by a secret; install "
      "libsodium-dev and build again");
}

}  // namespace rondo::detail

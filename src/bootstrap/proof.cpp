#include "bootstrap/proof.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {

Nonce fresh_nonce() {
  Nonce nonce{};
  if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    throw TransportError(
        fmt::format("getrandom failed: {}; does a sandbox forbid it?", std::strerror(errno)));
  }
  return nonce;
}

bool same(const Proof& a, const Proof& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace rondo::detail

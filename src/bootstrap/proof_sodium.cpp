// Proofs by libsodium: HMAC-SHA-512-256, with a key that is the hash of the secret.
#include <sodium.h>

#include <rondo/errors.hpp>

#include "bootstrap/proof.hpp"

namespace rondo::detail {

static_assert(sizeof(Proof) == crypto_auth_BYTES);

bool can_prove() { return true; }

Proof prove(std::string_view secret, std::span<const std::uint8_t> message) {
  if (sodium_init() < 0) throw TransportError("libsodium cannot be used on this machine");
  std::array<std::uint8_t, crypto_auth_KEYBYTES> key{};
  crypto_generichash(key.data(), key.size(), reinterpret_cast<const std::uint8_t*>(secret.data()),
                     secret.size(), nullptr, 0);
  Proof proof{};
  crypto_auth(proof.data(), message.data(), message.size(), key.data());
  sodium_memzero(key.data(), key.size());
  return proof;
}

}  // namespace rondo::detail

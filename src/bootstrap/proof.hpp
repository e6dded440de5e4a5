// Proofs that two processes know the same secret. The secret itself is never sent.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace rondo::detail {

using Nonce = std::array<std::uint8_t, 32>;  // random, used once
using Proof = std::array<std::uint8_t, 32>;

// Throws TransportError.
Nonce fresh_nonce();

// Whether Rondo was built with what proofs need.
bool can_prove();

// Proves knowledge of `secret` for this one message. Throws UsageError unless can_prove().
Proof prove(std::string_view secret, std::span<const std::uint8_t> message);

// Compares them in a time that does not depend on where they differ.
bool same(const Proof& a, const Proof& b);

}  // namespace rondo::detail

// Secrets and names that nobody can guess.
#pragma once

#include <sys/random.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace rondo::adapters {

// 16 random bytes, as 32 hexadecimal digits. Throws std::runtime_error if the system has none.
inline std::string random_hex() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("the system gives no random numbers");
  }
  std::string text;
  for (const unsigned char byte : bytes) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", byte);
    text += digits.data();
  }
  return text;
}

}  // namespace rondo::adapters

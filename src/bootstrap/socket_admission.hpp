// How rank 0 of a SocketBootstrap lets in the others, and what they say to each other then.
#pragma once

#include <sys/un.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"

namespace rondo::detail {

constexpr std::uint64_t kMagic = 0x32306F646E6F7271U;

// What a rank sends when it has connected to rank 0.
struct Hello {
  std::uint64_t magic = kMagic;
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

// What rank 0 answers to all that have connected.
enum class Verdict : std::uint8_t { welcome, usage, timeout, transport };
struct Answer {
  Verdict verdict = Verdict::welcome;
  std::array<char, 511> reason{};
};

// Throws UsageError for a path that a socket cannot have.
sockaddr_un address_of(const std::string& path);

// Listens at `path`, which it makes and removes, until all ranks of `size` have come and been welcomed. Returns their
// sockets, by rank; rank 0 has none. Throws UsageError, TransportError, or TimeoutError that names the ranks that
// have not come, and sends the reason to all that have.
std::vector<FileDescriptor> admit_ranks(const std::string& path, int size,
                                        std::chrono::milliseconds timeout,
                                        Clock::time_point deadline);

}  // namespace rondo::detail

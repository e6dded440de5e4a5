// Pages of the program that have moved into the arena, and move back.
#pragma once

#include <cstddef>

#include "base/owner_process.hpp"
#include "memory/arena.hpp"

namespace rondo::detail {

class Adoption {
 public:
  // Whole pages. Throws UsageError, TransportError, and has changed nothing.
  Adoption(Arena& arena, std::byte* begin, std::size_t bytes);
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;
  ~Adoption();

 private:
  Arena& arena_;
  std::byte* begin_;
  std::size_t bytes_;
  std::byte* pages_ = nullptr;  // of the arena
  OwnerProcess owner_process_;
};

}  // namespace rondo::detail

// Arenas of tests.
#pragma once

#include <cstddef>
#include <vector>

#include "memory/arena.hpp"

namespace rondo::test {

// An arena is never destroyed; leak detectors find all of these here.
inline detail::Arena& new_arena(std::size_t bytes) {
  static auto* all = new std::vector<detail::Arena*>;
  return *all->emplace_back(new detail::Arena(bytes));
}

}  // namespace rondo::test

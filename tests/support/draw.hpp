// Which cases of a large matrix a run tries: RONDO_TEST_PART=8 draws one of eight of them by
// RONDO_TEST_SEED; without it, all are tried.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace rondo::test {

inline std::uint64_t test_number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// In random order. Each test draws others, and so does a test that runs in several ways, which
// `way` names; all ranks of a test draw the same.
template <class Case>
std::vector<Case> drawn(std::vector<Case> cases, const std::string& way = {}) {
  const std::uint64_t part = test_number("RONDO_TEST_PART", 1);
  if (part <= 1) return cases;
  const std::uint64_t seed = test_number("RONDO_TEST_SEED", 1);
  const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name() + way;
  std::seed_seq seeds(name.begin(), name.end());
  std::mt19937_64 random(seed ^ std::mt19937_64(seeds)());
  std::shuffle(cases.begin(), cases.end(), random);
  const std::size_t all = cases.size();
  cases.resize((all + part - 1) / part);
  std::printf("%zu of %zu cases, drawn by RONDO_TEST_SEED=%llu RONDO_TEST_PART=%llu\n",
              cases.size(), all, static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(part));
  return cases;
}

}  // namespace rondo::test

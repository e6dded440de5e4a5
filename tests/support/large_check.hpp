// More elements than an int can count.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

namespace rondo::test {

inline constexpr std::size_t kBeyondInt = (std::size_t{1} << 31U) + 12347;

// KiB of memory that can be had without swapping.
inline std::uint64_t available_kib() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::uint64_t value = 0;
  std::string unit;
  while (file >> key >> value >> unit) {
    if (key == "MemAvailable:") return value;
  }
  return 0;
}

// A byte that depends on all bits of its index; costs one multiplication.
inline std::uint8_t byte_at(std::uint64_t index) {
  return static_cast<std::uint8_t>((index * 0x9E3779B97F4A7C15U) >> 56U);
}

// Rank r contributes its byte plus r.
inline void check_beyond_int(Communicator& comm) {
  std::vector<std::uint8_t> data(kBeyondInt);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::uint8_t>(byte_at(i) + comm.rank());
  }
  comm.all_reduce(data);
  const int n = comm.size();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    wrong += data[i] == static_cast<std::uint8_t>(byte_at(i) * n + n * (n - 1) / 2) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0U);
}

}  // namespace rondo::test

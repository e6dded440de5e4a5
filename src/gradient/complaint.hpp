// What a rank did wrong in an iteration, in one word that travels, so that all ranks throw the same text.
#pragma once

#include <cstdint>
#include <string>

namespace rondo::detail {

// The greater of two is told.
enum class Wrong : std::uint8_t {
  nothing,
  unmarked,
  unknown,
  late,
  twice,
  pointer,
  count,
  samples,
  passes  // under no_sync, which ranks compare as an iteration begins
};

struct Complaint {
  Wrong what = Wrong::nothing;
  int rank = 0;
  std::uint32_t parameter = 0;
  std::uint8_t more = 0;  // parameters of which the same is true; 255: or more

  explicit operator bool() const { return what != Wrong::nothing; }
};

// Of several, the largest word is that of the greatest wrong, on the lowest rank.
std::uint64_t word_of(const Complaint& complaint);
Complaint complaint_in(std::uint64_t word);

// `name`: of the parameter, if it has one.
std::string text_of(const Complaint& complaint, const std::string& name);

}  // namespace rondo::detail

// What a rank did wrong in an iteration, packed into one word that ranks exchange, so that all
// throw the same text.
#pragma once

#include <cstdint>
#include <string>

namespace rondo::detail {

// What is wrong in an iteration. If several things are wrong, the greatest value is reported.
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
  std::uint8_t more = 0;  // further parameters with the same complaint; 255: at least so many

  explicit operator bool() const { return what != Wrong::nothing; }
};

// The largest of several words is that of the greatest Wrong; where several ranks have it, the
// lowest rank's.
std::uint64_t word_of(const Complaint& complaint);
Complaint complaint_in(std::uint64_t word);

// `name`: of the parameter, if it has one.
std::string text_of(const Complaint& complaint, const std::string& name);

}  // namespace rondo::detail

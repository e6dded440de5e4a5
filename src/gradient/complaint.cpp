#include "gradient/complaint.hpp"

#include <fmt/format.h>

namespace rondo::detail {
namespace {

// 8 bits say what, 16 which rank, 8 how many more, 32 which parameter.
constexpr std::uint64_t kRankMask = 0xFFFFU;

}  // namespace

std::uint64_t word_of(const Complaint& complaint) {
  if (!complaint) return 0;
  const std::uint64_t rank = kRankMask - static_cast<std::uint64_t>(complaint.rank);
  return static_cast<std::uint64_t>(complaint.what) << 56U | (rank & kRankMask) << 40U |
         static_cast<std::uint64_t>(complaint.more) << 32U | complaint.parameter;
}

Complaint complaint_in(std::uint64_t word) {
  if (word == 0) return {};
  return {static_cast<Wrong>(word >> 56U),
          static_cast<int>(kRankMask - ((word >> 40U) & kRankMask)),
          static_cast<std::uint32_t>(word), static_cast<std::uint8_t>(word >> 32U)};
}

std::string text_of(const Complaint& complaint, const std::string& name) {
  const auto about = [&](const char* call) {
    const std::string more =
        complaint.more > 0 ? fmt::format(" (and {} more)", complaint.more) : std::string();
    return fmt::format("rank {}: {}: parameter {} ('{}'){}", complaint.rank, call,
                       complaint.parameter, name, more);
  };
  switch (complaint.what) {
    case Wrong::unmarked:
      return about("finish") +
             " was not marked ready. Mark every parameter once in an iteration, or set "
             "GradientOptions::allow_unused, so that it counts as zeros";
    case Wrong::late:
      return about("mark_ready") +
             " was marked while finish() was running. Mark gradients before finish() is called";
    case Wrong::twice:
      return about("mark_ready") +
             " was marked before in this iteration. Mark a gradient once, when nothing will be "
             "added "
             "to it; passes whose gradients are added up belong under GradientReducer::no_sync";
    case Wrong::pointer:
      return about("mark_ready") +
             " came with another address or type than the reducer was made with. Mark the memory "
             "that "
             "was registered, or GradientReducer::gradient where the reducer owns it";
    case Wrong::count:
      return about("mark_ready") +
             " came with another number of elements than the reducer was made with";
    case Wrong::unknown:
      return fmt::format("rank {}: mark_ready: there is no parameter {}", complaint.rank,
                         complaint.parameter);
    case Wrong::samples:
      return fmt::format(
          "rank {}: an iteration with Average::samples began without set_samples; say before the "
          "first "
          "mark how many samples the gradients stand for",
          complaint.rank);
    case Wrong::passes:
      return fmt::format("rank {}: finish: other ranks made another number of passes under no_sync",
                         complaint.rank);
    case Wrong::nothing:
      break;
  }
  return {};
}

}  // namespace rondo::detail

#include "gradient/iteration.hpp"

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {

Iteration::Iteration(int rank, const std::vector<Parameter>& parameters,
                     const GradientOptions& options)
    : rank_(rank),
      parameters_(parameters),
      counts_samples_(options.average == Average::samples),
      allows_unused_(options.allow_unused),
      ledger_(parameters.size()) {}

Complaint Iteration::about(Wrong wrong, std::size_t parameter) const {
  if (wrong == Wrong::nothing) return {};
  return {wrong, rank_, static_cast<std::uint32_t>(parameter), 0};
}

Complaint Iteration::begin(bool has_joined) {
  open_ = true;
  finishing_ = false;
  has_joined_ = has_joined;
  next_ = 0;
  ledger_.begin();
  const bool lacks_samples = counts_samples_ && !samples_ && !has_joined_;
  return about(lacks_samples ? Wrong::samples : Wrong::nothing, 0);
}

void Iteration::require_closed(const char* call) const {
  if (!open_) return;
  throw UsageError(
      fmt::format("rank {}: {} in the middle of an iteration; call it before the first mark, or "
                  "after finish()",
                  rank_, call));
}

Complaint Iteration::mark(std::size_t parameter, Wrong wrong) {
  if (parameter >= parameters_.size()) return about(Wrong::unknown, parameter);
  if (wrong != Wrong::nothing) return about(wrong, parameter);
  if (finishing_) return about(Wrong::late, parameter);
  return about(ledger_.mark(parameter) ? Wrong::nothing : Wrong::twice, parameter);
}

void Iteration::end() {
  open_ = false;
  samples_.reset();
}

void Iteration::go_on() {
  if (--pauses_ > 0) return;
  if (in_pass_) ++passes_;
  in_pass_ = false;
}

Complaint Iteration::mark_in_pass(std::size_t parameter, Wrong wrong) {
  if (parameter >= parameters_.size()) return about(Wrong::unknown, parameter);
  in_pass_ = in_pass_ || wrong == Wrong::nothing;
  return about(wrong, parameter);
}

void Iteration::end_pass() {
  ++passes_;
  in_pass_ = false;
}

void Iteration::set_samples(std::uint64_t samples) {
  require_closed("set_samples");
  if (samples > kMostSamples) {
    throw UsageError(
        fmt::format("rank {}: set_samples: {} samples are more than 2^60", rank_, samples));
  }
  samples_ = samples;
}

OpeningWords Iteration::take_opening() {
  const std::uint64_t samples = counts_samples_ ? samples_.value_or(0) : 1;
  const OpeningWords words =
      has_joined_ ? OpeningWords::of_joined(passes_) : OpeningWords::of_samples(samples, passes_);
  passes_ = 0;
  return words;
}

std::vector<std::size_t> Iteration::missing_in(const Bucket& bucket) const {
  std::vector<std::size_t> missing;
  for (const Member& member : bucket.members) {
    if (!ledger_.marked(member.parameter)) missing.push_back(member.parameter);
  }
  return missing;
}

Complaint Iteration::complaint_about_missing(std::size_t parameter) const {
  return about(has_joined_ || allows_unused_ ? Wrong::nothing : Wrong::unmarked, parameter);
}

void Iteration::note(const Complaint& complaint) {
  if (!noted_) {
    noted_ = complaint;
  } else if (noted_.what == Wrong::unmarked && complaint.what == Wrong::unmarked &&
             noted_.more < 255) {
    ++noted_.more;
  }
}

Complaint Iteration::take_noted() {
  const Complaint told = noted_;
  noted_ = {};
  return told;
}

std::string Iteration::text_of(const Complaint& complaint) const {
  const bool known = complaint.parameter < parameters_.size();
  return detail::text_of(complaint, known ? parameters_[complaint.parameter].name : "");
}

}  // namespace rondo::detail

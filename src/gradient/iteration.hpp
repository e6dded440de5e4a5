// What a rank's caller has said about the iteration under way: which gradients have come, and what
// was wrong; and about the next one: samples, and passes under no_sync. Pure state, without threads
// and without calls. The reducer guards it with its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rondo/gradients.hpp>

#include "gradient/complaint.hpp"
#include "gradient/ledger.hpp"
#include "gradient/opening.hpp"

namespace rondo::detail {

// Why an iteration could not go on, where its reducer was destroyed.
inline constexpr const char* kReducerDestroyed =
    "the gradient reducer was destroyed in the middle of an iteration";

class Iteration {
 public:
  // Borrows the parameters.
  Iteration(int rank, const std::vector<Parameter>& parameters, const GradientOptions& options);

  // Uses these buckets from the next iteration on.
  void set_buckets(std::span<const Bucket> buckets) { ledger_.set_buckets(buckets); }

  // Called at the first mark of an iteration, or in finish() or join() if there was no mark.
  Complaint begin(bool has_joined);
  [[nodiscard]] bool is_open() const { return open_; }
  // Throws UsageError in the middle of an iteration, where `call` may not be made.
  void require_closed(const char* call) const;
  // Returns what is wrong with the mark; `wrong`: what its caller has found already.
  Complaint mark(std::size_t parameter, Wrong wrong);
  // Nothing more will be marked.
  void finish() { finishing_ = true; }
  [[nodiscard]] bool is_finishing() const { return finishing_; }
  [[nodiscard]] bool has_joined() const { return has_joined_; }
  void end();

  // Passes under no_sync, whose gradients the caller adds up.
  void pause() { ++pauses_; }
  void go_on();
  [[nodiscard]] bool is_paused() const { return pauses_ > 0; }
  Complaint mark_in_pass(std::size_t parameter, Wrong wrong);
  void end_pass();

  // Throws UsageError.
  void set_samples(std::uint64_t samples);

  // The words that this rank sends as the iteration opens; sets the number of passes to 0.
  OpeningWords take_opening();

  // Buckets are reduced in their order: the next one may go when its gradients have come, or no
  // more will come.
  [[nodiscard]] std::size_t next() const { return next_; }
  [[nodiscard]] bool may_go() const { return finishing_ || ledger_.complete(next_); }
  void advance() { ++next_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  // Gradients that count as zeros, since nobody marked them.
  [[nodiscard]] std::vector<std::size_t> missing_in(const Bucket& bucket) const;
  // The complaint about such a parameter; none if it may be missing.
  Complaint complaint_about_missing(std::size_t parameter) const;

  // Keeps the first complaint; if it is about an unmarked parameter, counts further unmarked ones.
  void note(const Complaint& complaint);
  [[nodiscard]] const Complaint& noted() const { return noted_; }
  // Returns and clears the noted complaint; later ones are reported at the end of the next
  // iteration.
  Complaint take_noted();

  // Returns the text for a complaint of this rank or of another.
  [[nodiscard]] std::string text_of(const Complaint& complaint) const;

 private:
  [[nodiscard]] Complaint about(Wrong wrong, std::size_t parameter) const;

  int rank_;
  const std::vector<Parameter>& parameters_;
  bool counts_samples_;
  bool allows_unused_;
  Ledger ledger_;
  bool open_ = false;
  bool finishing_ = false;
  bool has_joined_ = false;
  std::size_t next_ = 0;
  std::optional<std::uint64_t> samples_;
  int pauses_ = 0;            // how many no_sync are alive
  bool in_pass_ = false;      // marks have come in a pass that has not ended
  std::uint64_t passes_ = 0;  // since the last iteration
  Complaint noted_;
};

}  // namespace rondo::detail

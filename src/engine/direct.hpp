// The host's port of run_direct: each rank reads and writes the buffers of all ranks of its host.
//
// Ranks show their buffers in their Presence (carrier/presence.hpp), with the call's signature;
// every rank compares all signatures with its own before it touches anything. The release store
// that completes a Presence pairs with the acquire load of those who wait for it, so they find the
// inputs as the caller left them. What holds before and after a rank touches buffers, and when a
// call fails: engine/touching.hpp.
//
// Whether all buffers are reachable is known only from what all ranks show. A rank whose own
// buffers are not reachable knows at once that the call goes another way, and does not wait. It may
// end the call and enter later ones while others still look for what it showed: they find it in a
// later call, and conclude the same, since nobody leaves a direct call before all have touched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rondo/call.hpp>

#include "carrier/presence.hpp"
#include "engine/context.hpp"
#include "engine/learned_stores.hpp"
#include "engine/run_direct.hpp"
#include "reduce/fold.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {

class Direct {
 public:
  explicit Direct(Context& context);

  // `shown`: what this rank has shown in its Presence. Returns false if some rank's buffers cannot
  // be reached: then nothing was touched. `may_fall_back`: in that case all ranks carry out the
  // call in another way; a rank whose own buffers cannot be reached returns at once, the others
  // when they come to such a rank. Throws Failure.
  bool run(const Call& call, const ShownCall& shown, bool may_fall_back);
  // A rank calls this after that: throws UsageError, which names the lowest rank whose buffers
  // cannot be reached, unless that rank has gone on.
  [[noreturn]] void throw_unreachable() const;

  // The port of run_direct.
  bool meet();
  void handle(const Range& elements, const RankRange& sources, const RankRange& targets);
  bool finish();

 private:
  // Whether the buffers that `rank` has shown can be reached.
  bool sees_reachable(int rank);
  // Folds into this rank's own output, if that is a target, and copies the result to those of the
  // others by non-temporal stores.
  void fold_past_caches(const FoldOperands& operands, std::uint64_t count);
  void copy_to_all(const FoldOperands& operands, std::size_t bytes);

  Context& context_;
  Wiring& wiring_;
  CopyKernel copy_;
  LearnedStores stores_of_folds_;
  LearnedStores stores_of_copies_;
  // The members below belong to the call in progress.
  const Call* call_ = nullptr;
  DirectCall plan_;
  ShownCall shown_;
  bool may_fall_back_ = false;
  std::vector<BufferLocations> buffers_;  // by rank
  std::vector<const std::byte*> ins_;
  std::vector<std::byte*> outs_;
  std::byte* own_out_ = nullptr;             // this rank's part of its output, if it writes there
  std::vector<const std::byte*> piece_ins_;  // of a piece of the part
  std::optional<int> unreachable_rank_;
};

// To be held while other ranks may use the locations that this rank shows in `call`.
Arena::Use use_of(const Wiring& wiring, const Call& call, const BufferLocations& buffers);
// Where the other ranks find this rank's buffers in `call`.
BufferLocations locations_of(const Wiring& wiring, const Call& call);

}  // namespace rondo::detail

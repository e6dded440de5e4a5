// The host's port of run_direct: each rank reads and writes the buffers of all ranks of its host.
//
// Ranks show their buffers in their Presence (carrier/presence.hpp), with the call's signature; every rank compares all
// signatures with its own before it touches anything. The release store that completes a Presence pairs with the acquire
// load of those who wait for it, so they find the inputs as the caller left them. What holds before and after a rank
// touches buffers, and when a call fails: engine/touching.hpp.
//
// Whether all buffers are reachable is known only from what all ranks show. A rank whose own buffers are not reachable
// knows at once that the call goes another way, and does not wait. It may end the call and enter later ones while others
// still look for what it showed: they find it in a later call, and conclude the same, since nobody leaves a direct call
// before all have touched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rondo/call.hpp>

#include "carrier/presence.hpp"
#include "engine/failure.hpp"
#include "engine/run_direct.hpp"
#include "engine/touching.hpp"
#include "engine/waiter.hpp"
#include "engine/wiring.hpp"
#include "reduce/fold.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {

class Direct {
 public:
  Direct(Wiring& wiring, Waiter& waiter, Touching& touching);

  // Where the other ranks find this rank's buffers in `call`.
  [[nodiscard]] BufferLocations locations_of(const Call& call) const;

  enum class Outcome : std::uint8_t {
    done,
    unreachable,  // some rank's buffers cannot be reached; nothing was touched
    failed        // failure() says why
  };
  // `shown`: what this rank has shown in its Presence. `or_else`: if some rank's buffers are not reachable, all ranks
  // carry out the call in another way, and no rank has to wait to learn that.
  Outcome run(const Call& call, const ShownCall& shown, bool or_else);
  [[nodiscard]] const Failure& failure() const { return failure_; }
  // How far the call came, for errors.
  [[nodiscard]] std::string so_far() const;
  // The lowest rank whose buffers were found unreachable, or nothing if that rank had gone on already.
  [[nodiscard]] std::optional<int> unreachable_rank() const { return unreachable_rank_; }

  // The port of run_direct.
  bool meet();
  void handle(const Range& elements, const RankRange& sources, const RankRange& targets);
  bool finish();

 private:
  enum class Seen : std::uint8_t { reachable, unreachable, failed };
  Seen look_at(int rank);
  void copy_to_all(const FoldOperands& operands, std::size_t bytes);
  [[nodiscard]] Presence& presence(int rank) const { return wiring_.links.segment->presence(rank); }

  Wiring& wiring_;
  Waiter& waiter_;
  Touching& touching_;
  CopyKernel copy_;
  // Of the call in progress.
  const Call* call_ = nullptr;
  DirectCall plan_;
  ShownCall shown_;
  bool or_else_ = false;
  std::vector<BufferLocations> buffers_;  // by rank
  std::vector<const std::byte*> ins_;
  std::vector<std::byte*> outs_;
  int met_ = 0;  // ranks that have come, with the same call
  bool reachable_ = true;
  std::optional<int> unreachable_rank_;
  Failure failure_;
};

}  // namespace rondo::detail

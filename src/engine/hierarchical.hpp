// All-reduces that go first inside each host, then between the hosts, then inside each host: piece
// by piece of the vector. Between hosts a piece goes along rails, by several owners of each host,
// each of which has a chunk of the piece, by ring or by halving_doubling; or, if it has few bytes,
// between the hosts' leaders.
// While the network carries a piece, the host works on the pieces before and after it
// (engine/inside.hpp).
#pragma once

#include <cstdint>

#include <rondo/call.hpp>

#include "engine/context.hpp"
#include "engine/inside.hpp"
#include "plan/cost_model.hpp"

namespace rondo::detail {

class Hierarchical {
 public:
  explicit Hierarchical(Context& context);

  // `shown`: what this rank has shown. Throws Failure.
  void run(const Call& call, const BetweenHosts& between_hosts, const ShownCall& shown);

 private:
  // How many elements a piece has, at most.
  [[nodiscard]] std::uint64_t piece_elems(const Call& call,
                                          const BetweenHosts& between_hosts) const;
  void run_between(const Call& call, const BetweenHosts& between_hosts, const Range& chunk,
                   const Signature& signature);

  Context& context_;
  Inside inside_;
  RingPlace along_rail_;  // among the leaders, too, whose rail is the first
};

}  // namespace rondo::detail

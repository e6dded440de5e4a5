// All-reduces that go first inside each host, then between the hosts, then inside each host: piece
// by piece of the vector. Between hosts a piece goes along rails, by several owners of each host,
// each of which has a chunk of the piece; or, if it has few bytes, between the hosts' leaders.
// While the network carries a piece, the host works on the pieces before and after it
// (engine/inside.hpp).
#pragma once

#include <rondo/call.hpp>

#include "engine/context.hpp"
#include "engine/inside.hpp"

namespace rondo::detail {

class Hierarchical {
 public:
  explicit Hierarchical(Context& context);

  // `between_hosts`: how each host's leader exchanges its host's result with the others'; `ring`:
  // along rails, by several owners. `shown`: what this rank has shown. Throws Failure.
  void run(const Call& call, Algorithm between_hosts, const ShownCall& shown);

 private:
  void run_between(const Call& call, Algorithm algorithm, const Range& chunk,
                   const Signature& signature);

  Context& context_;
  Inside inside_;
  RingPlace among_leaders_;
};

}  // namespace rondo::detail

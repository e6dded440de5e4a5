// A reduction whose sums are made in rank order, between any number of hosts: the vector goes from
// rank 0 through all ranks to the last one, each of which adds its own elements, and from there
// back to rank 0 and on to the others. Both ways are chains of the ring's schedule, whose ring must
// be in rank order. The 16-bit floats travel as f32 until all have been added, and so are rounded
// once. The bits are those of `direct` and `one_shot` (reduce/fold.hpp).
//
// Example: four ranks, all_reduce of f16. Rank 0 sends its elements as f32; ranks 1 and 2 add
// theirs; rank 3 adds its own, rounds to f16, and sends the result to rank 0, which sends it to
// rank 1, and that to rank 2.
//
// An edge carries the vector up to twice, where the ring's all_reduce of n ranks carries it 2(n −
// 1)/n times. 16-bit floats take half as many bytes again, since they are f32 on the first way.
#pragma once

#include <rondo/call.hpp>

#include "engine/context.hpp"

namespace rondo::detail {

// Carries out a call that reduces: as a reduce and a broadcast, by ring. Throws Failure,
// TransportError.
void run_by_chain(Context& context, const Call& call, const Signature& signature);

}  // namespace rondo::detail

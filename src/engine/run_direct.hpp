// The order of a `direct` call: ranks show each other their buffers and wait for all, handle their
// parts, then say so and wait for all.
//
// Example: four ranks, all_reduce. Each shows where its buffers are. When rank 2 has seen all four,
// with the signature of its own call, it adds up chunk 2 of the four inputs and writes the sum to
// the four outputs. Then it shows that it is done, and returns when the other three are: its own
// output then holds the chunks 0, 1 and 3 that they have written, and nobody reads its input any
// more. There are two waits, however many ranks there are.
#pragma once

#include <concepts>

#include "base/portable.hpp"
#include "schedule/direct_part.hpp"

namespace rondo::detail {

// What run_direct stands on: engine/direct.hpp on a host, protocol/device_direct.hpp in a kernel.
template <class P>
concept DirectPort = requires(P& port, const Range& elements, const RankRange& ranks) {
  // Waits until all ranks have shown their buffers. False: this call cannot go this way, and
  // nothing has been touched.
  { port.meet() } -> std::same_as<bool>;
  // Reads these elements of the inputs of `ranks`, and writes the results to the outputs of the
  // second `ranks`.
  port.handle(elements, ranks, ranks);
  // Waits until no rank touches this rank's buffers, and what they wrote is there. False: the call
  // has failed. A host's port throws its Failure in place of that.
  { port.finish() } -> std::same_as<bool>;
};

template <DirectPort P>
[[nodiscard]] RONDO_HOST_DEVICE bool run_direct(const DirectCall& call, int rank, P& port) {
  if (!port.meet()) return false;
  port.handle(call.elements(rank), call.sources(rank), call.targets(rank));
  return port.finish();
}

}  // namespace rondo::detail

// One all_reduce of many buffers: they are packed side by side in memory that the communicator
// keeps for that, reduced, and unpacked.
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rondo/communicator.hpp>
#include <rondo/errors.hpp>

#include "base/checksum.hpp"
#include "communicator/plan_on_host.hpp"
#include "communicator/state.hpp"

namespace rondo {
namespace {

using Parts = std::vector<Communicator::Part>;

// The call, without its buffers. Throws UsageError.
Call call_of(const Communicator& communicator, const Parts& parts, DataType type, ReduceOp op,
             const CallOptions& options) {
  Call call;
  call.collective = Collective::all_reduce;
  call.type = type;
  call.op = op;
  call.options = options;
  call.part_of = detail::PartOf::all_reduce_coalesced;
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("rank {}: all_reduce_coalesced: {}", communicator.rank(), why));
  };
  detail::SizesChecksum sizes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].data == nullptr && parts[i].count > 0) {
      refuse(fmt::format("buffer {} is null, but has {} elements", i, parts[i].count));
    }
    if (parts[i].count > std::numeric_limits<std::size_t>::max() - call.count) {
      refuse("the buffers have more elements together than the address space has bytes");
    }
    call.count += parts[i].count;
    sizes.add(parts[i].count);
  }
  call.checksum = sizes.value();
  return call;
}

void pack(std::byte* packed, const Parts& parts, std::size_t element) {
  for (const Communicator::Part& part : parts) {
    if (part.count > 0) std::memcpy(packed, part.data, part.count * element);
    packed += part.count * element;
  }
}
void unpack(const std::byte* packed, const Parts& parts, std::size_t element) {
  for (const Communicator::Part& part : parts) {
    if (part.count > 0) std::memcpy(part.data, packed, part.count * element);
    packed += part.count * element;
  }
}

// At the call's turn, since calls share the memory. The other ranks wait for this call, so too
// little memory ends the communicator.
void reduce_packed(detail::CommunicatorState& state, detail::PlannedCall planned,
                   const Parts& parts) {
  const std::size_t element = size_of(planned.call.type);
  std::byte* const packed = state.packed_elements(planned.call.count * element);
  pack(packed, parts, element);
  planned.call.in = planned.call.out = packed;
  state.engine.run(planned);
  unpack(packed, parts, element);
}

}  // namespace

namespace detail {

std::byte* CommunicatorState::packed_elements(std::size_t bytes) {
  if (bytes <= packed.size()) return reinterpret_cast<std::byte*>(packed.data());
  try {
    packed = {};
    packed = RegisteredMemory<std::uint8_t>(bytes);
  } catch (const std::exception& error) {
    const std::string text = fmt::format(
        "rank {}: all_reduce_coalesced: there is no memory to pack {} bytes of buffers: {}",
        wiring.rank, bytes, error.what());
    engine.abort(text);
    throw TransportError(text);
  }
  return reinterpret_cast<std::byte*>(packed.data());
}

}  // namespace detail

void Communicator::run_coalesced(std::vector<Part> parts, DataType type, ReduceOp op,
                                 const CallOptions& options) {
  const Call call = call_of(*this, parts, type, op, options);
  detail::PlannedCall planned = detail::plan_packed(*state_, call);
  detail::prepare_to_run(*state_, call, user_);
  state_->queue.run([&] { reduce_packed(*state_, planned, parts); });
}

Work Communicator::run_coalesced_async(std::vector<Part> parts, DataType type, ReduceOp op,
                                       const CallOptions& options) {
  const Call call = call_of(*this, parts, type, op, options);
  detail::PlannedCall planned = detail::plan_packed(*state_, call);
  detail::CommunicatorState& state = *state_;
  return detail::enqueue(state, call, user_, [&state, planned, parts = std::move(parts)] {
    reduce_packed(state, planned, parts);
  });
}

}  // namespace rondo

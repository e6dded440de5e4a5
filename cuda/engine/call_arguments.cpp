#include "cuda/engine/call_arguments.hpp"

#include <algorithm>
#include <chrono>

#include "base/collective_traits.hpp"
#include "base/deadline.hpp"
#include "cuda/protocol/one_shot.hpp"
#include "plan/call_signature.hpp"

namespace rondo::detail::gpu {
namespace {

// A call uses one channel for each started piece of a chunk of this size: a block's threads move
// that much in one go.
constexpr std::uint64_t kLeastPartBytes = 16384;
// The same by direct, whose blocks hand nothing on: short parts, so that also small calls use the
// whole device.
constexpr std::uint64_t kLeastDirectPartBytes = 4096;
// What the 256 threads of a block exchange by one_shot without a second round: a unit each, and the
// signature's units are among them.
constexpr std::uint64_t kOneShotPartBytes =
    (256 - kHeaderUnits) * kUnitBytes / kGranuleBytes * kGranuleBytes;

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

CallBlocks blocks_for(const Call& call, Algorithm algorithm, int rank,
                      const DeviceGeometry& geometry) {
  const auto blocks = [](std::uint64_t bytes, std::uint64_t part_bytes, int most) {
    return static_cast<int>(std::clamp<std::uint64_t>(divide_up(bytes, part_bytes), 1,
                                                      static_cast<std::uint64_t>(most)));
  };
  const std::uint64_t bytes = call.count * size_of(call.type);
  if (is_message(call.collective)) {
    const auto channels = [&](std::uint64_t sent_bytes, int peer) {
      return blocks(sent_bytes, kLeastPartBytes, geometry.pairwise_channels_between(rank, peer));
    };
    if (call.collective == Collective::recv) return {channels(bytes, call.from)};
    if (call.collective == Collective::send) return {channels(bytes, call.to)};
    return {channels(bytes, call.to), channels(call.received * size_of(call.type), call.from)};
  }
  if (algorithm == Algorithm::one_shot)
    return {blocks(bytes, kOneShotPartBytes, geometry.channels)};
  int most = geometry.channels;
  if (algorithm == Algorithm::naive) most = geometry.off_ring_channels;
  if (algorithm == Algorithm::pairwise) most = geometry.fewest_pairwise_channels();
  const bool direct = algorithm == Algorithm::automatic || algorithm == Algorithm::direct;
  const std::uint64_t part_bytes = direct ? kLeastDirectPartBytes : kLeastPartBytes;
  return {blocks(bytes, part_bytes * static_cast<std::uint64_t>(geometry.size), most)};
}

std::uint64_t inbox_units_for(std::uint64_t bytes, int channels) {
  const std::uint64_t part =
      std::max(kOneShotPartBytes, divide_up(bytes, static_cast<std::uint64_t>(channels)));
  return (part + kGranuleBytes) / kUnitBytes;
}

KernelArguments call_arguments(const PlannedCall& planned, const RingPlace& place,
                               const RankView& rank, const CallBlocks& blocks,
                               const std::optional<ShownBuffers>& shown) {
  const Call& call = planned.call;
  const Algorithm algorithm = planned.algorithm;
  const bool direct = algorithm == Algorithm::automatic || algorithm == Algorithm::direct;
  const Plan plan = make_plan(call, direct ? Algorithm::ring : algorithm, place, kGranuleBytes);
  KernelArguments arguments;
  arguments.rank = rank;
  arguments.schedule = plan.schedule;
  arguments.slicing = plan.slicing;
  arguments.slicing.channels = static_cast<std::uint64_t>(blocks.channels);
  arguments.receiving_channels = blocks.receiving_channels;
  arguments.signature =
      is_message(call.collective)
          ? signature_of_message(call.collective == Collective::recv ? call.from : place.rank,
                                 rank.message_number, call.count, call.type)
          : planned.signature;
  arguments.received = call.received;
  arguments.in = static_cast<const std::byte*>(call.in);
  arguments.out = static_cast<std::byte*>(call.out);
  arguments.in_origin = plan.in_origin;
  arguments.out_origin = plan.out_origin;
  const std::chrono::nanoseconds timeout =
      std::min<std::chrono::milliseconds>(planned.timeout, kLongestTimeout);
  arguments.timeout_ns = static_cast<std::uint64_t>(timeout.count());
  arguments.chunks_are_ranks = plan.chunks_are_ranks;
  const std::uint64_t granule = plan.slicing.channel_granule;
  const std::uint64_t part = divide_up(call.count, static_cast<std::uint64_t>(blocks.channels));
  arguments.one_shot_part = divide_up(part, granule) * granule;
  arguments.direct = {call.collective, rank.size, call.root, call.count, granule};
  arguments.reachable = shown.has_value();
  if (shown) {
    arguments.shown_in = shown->in;
    arguments.shown_out = shown->out;
    arguments.shown_in.offset -= plan.in_origin * size_of(call.type);
    arguments.shown_out.offset -= plan.out_origin * size_of(call.type);
  }
  return arguments;
}

Kernel kernel_for_call(const Call& call, Algorithm algorithm) {
  Kernel kernel{call.type, call.op, KernelKind::ring};
  if (algorithm == Algorithm::one_shot) kernel.kind = KernelKind::one_shot;
  if (algorithm == Algorithm::pairwise) kernel.kind = KernelKind::pairwise;
  if (algorithm == Algorithm::automatic || algorithm == Algorithm::direct) {
    kernel.kind = KernelKind::direct;
  }
  return kernel;
}

}  // namespace rondo::detail::gpu

#include "engine/call_text.hpp"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/collective_traits.hpp"
#include "base/index.hpp"
#include "base/names.hpp"
#include "plan/call_signature.hpp"

namespace rondo::detail {
namespace {

// The function of the library whose part the call is; empty if the program has made it.
std::string_view function_with(const Signature& signature) {
  const auto collective = static_cast<Collective>(signature.collective);
  if (collective == Collective::all_reduce) return name_of(static_cast<PartOf>(root_of(signature)));
  return reduces(collective) ? std::string_view() : name_of(static_cast<PartOf>(signature.op));
}

}  // namespace

const char* const kUnmatchedMessage =
    "A message needs a send (or sendrecv) on one rank and a recv (or sendrecv) on the other; see "
    "whether the other rank makes that call, and names this rank. Two ranks that send to each "
    "other before they receive, "
    "also asynchronously, wait for each other if the messages are long: use sendrecv there.";

std::string describe(const Signature& signature) {
  const auto collective = static_cast<Collective>(signature.collective);
  const std::uint32_t checksum = is_message(collective) ? 0 : checksum_of(signature);
  const std::string_view function = function_with(signature);
  if (!function.empty() && checksum == 0) {
    return fmt::format("call {}, a part of {}", signature.sequence, function);
  }
  std::string arguments;
  if (signature.type == kOfUser) {
    arguments = fmt::format("{} bytes, a reduction of the program with digest {:x}",
                            signature.count, (checksum << 8U) | signature.op);
  } else if (signature.root == kCountsOfEachRank) {
    arguments =
        fmt::format("{} with counts of each rank", name(static_cast<DataType>(signature.type)));
  } else if (collective != Collective::barrier) {
    arguments =
        fmt::format("{} x {}", signature.count, name(static_cast<DataType>(signature.type)));
  }
  if (reduces(collective) && signature.type != kOfUser) {
    arguments += fmt::format(", {}", name(static_cast<ReduceOp>(signature.op)));
  }
  if (has_root(collective)) arguments += fmt::format(", root {}", root_of(signature));
  if (is_message(collective)) {
    const std::uint64_t number = number_of_message(signature);
    const std::string which =
        number == kAllMessages ? "a message" : fmt::format("message {}", number);
    return fmt::format("{} from rank {} ({})", which, signature.root, arguments);
  }
  if (checksum != 0 && signature.root != kCountsOfEachRank && signature.type != kOfUser) {
    arguments +=
        fmt::format(", {} with checksum {:x}", function.empty() ? "counts" : "sizes", checksum);
  }
  return fmt::format("call {} {}({}) by {}", signature.sequence,
                     function.empty() ? name(collective) : function, arguments,
                     name(static_cast<Algorithm>(signature.algorithm)));
}

std::string describe(const Progress& progress) {
  std::string text;
  if (progress.ranks_shown > 0) {
    text = fmt::format("{} of {} ranks had shown their buffers, {} had done their part",
                       progress.ranks_shown, progress.ranks, progress.ranks_done);
  } else if (progress.passes > 0) {
    text = fmt::format("{} passes inside the host done", progress.passes);
  }
  const bool moved = progress.slices_received > 0 || progress.bytes_sent > 0;
  if (!moved && !text.empty()) return text;
  return fmt::format("{}{}{} slices received, {} bytes sent", text, text.empty() ? "" : ", ",
                     progress.slices_received, progress.bytes_sent);
}

std::string text_of_timeout(const std::string& who, int peer, const Signature& call,
                            const std::string& so_far, const std::string& missing) {
  return fmt::format(
      "{} waited for rank {} until the deadline of {}; {}. {} If ranks are only slow, set a longer "
      "timeout (CallOptions, CommunicatorOptions or RONDO_TIMEOUT)",
      who, peer, describe(call), so_far, missing);
}

std::string text_of_missing(const Wiring& wiring, const Signature& signature,
                            const Failure& failure, const std::string& so_far) {
  const int peer = failure.peer;
  const RankPlace& place = wiring.topology.places[Index(peer)];
  if (failure.cause == Cause::peer_ended) {
    return fmt::format(
        "rank {}: rank {} (process {}) ended during {}; {}. Look at that process's own output for "
        "the reason",
        wiring.rank, peer, place.process_id, describe(signature), so_far);
  }
  if (failure.cause == Cause::host_vanished) {
    return fmt::format(
        "rank {}: the host of rank {} ({}) does not answer any more, noticed in {}; {}. Are that "
        "host, this host's network and the network between them up?",
        wiring.rank, peer, place.host, describe(signature), so_far);
  }
  return fmt::format(
      "rank {}: rank {} has destroyed its communicator and will not make {}; {}. Make the same "
      "calls in the same order on all ranks",
      wiring.rank, peer, describe(signature), so_far);
}

std::string who_is_missing(const Wiring& wiring, const Signature& signature) {
  if (is_message_signature(signature)) return kUnmatchedMessage;
  const std::vector<int>& sharing = wiring.links.ranks_sharing;
  std::string missing;
  for (const int rank : sharing) {
    if (wiring.links.segment->presence(rank).has_entered(signature.sequence)) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  if (sharing.size() == 1) return "It is not known which other ranks have made that call.";
  const std::string where = sharing.size() < static_cast<std::size_t>(wiring.size)
                                ? " that share memory with this one"
                                : "";
  if (missing.empty()) return fmt::format("All ranks{} have made that call.", where);
  return fmt::format("Ranks{} that have not made that call: {}.", where, missing);
}

std::string text_of_mismatch(int rank, const Signature& mine, int peer, const Signature& theirs) {
  if (is_message_signature(mine) && is_message_signature(theirs)) {
    return fmt::format(
        "rank {} expects {}, but rank {} sent {}. Pass the same type and number of elements to "
        "send and recv, and make the messages between two ranks in the same order on both",
        rank, describe(mine), peer, describe(theirs));
  }
  if (mine == theirs) {
    return fmt::format(
        "rank {} expects {} to bring another number of elements from rank {} than that rank sent. "
        "In all_to_all with counts, what one rank receives from another must be what that one "
        "sends to it",
        rank, describe(mine), peer);
  }
  Signature with_mine = theirs;
  with_mine.algorithm = mine.algorithm;
  if (with_mine == mine) {
    return fmt::format(
        "rank {} made {}, but rank {} made {}. Make the same calls in the same order on all ranks, "
        "by the same algorithm: RONDO_ALGO, CommunicatorOptions::algorithm or "
        "CallOptions::algorithm differs",
        rank, describe(mine), peer, describe(theirs));
  }
  const bool one_message = is_message_signature(mine) || is_message_signature(theirs);
  return fmt::format(
      "rank {} {} {}, but rank {} {} {}. Make the same calls in the same order on all ranks{}",
      rank, is_message_signature(mine) ? "expects" : "made", describe(mine), peer,
      is_message_signature(theirs) ? "sent" : "made", describe(theirs),
      one_message ? "; receive a message before the next gather, scatter or all_to_all" : "");
}

}  // namespace rondo::detail

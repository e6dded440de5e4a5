#include "engine/call_text.hpp"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/collective_traits.hpp"
#include "base/names.hpp"

namespace rondo::detail {

namespace {

// The lower half of a message's number.
constexpr std::uint32_t kMessageNumbers = 0xffffffff;

// Never 0, which is that of a call without counts (FNV-1a, on the bytes of each count).
std::int32_t checksum_of(const std::size_t* counts, int ranks) {
  std::uint32_t sum = 2166136261U;
  for (int rank = 0; rank < ranks; ++rank) {
    for (unsigned bit = 0; bit < 64; bit += 8) {
      sum = (sum ^ static_cast<std::uint8_t>(std::uint64_t{counts[rank]} >> bit)) * 16777619U;
    }
  }
  return static_cast<std::int32_t>(sum | 1U);
}

// The function of the library whose part the call is; empty if the program has made it.
std::string_view function_with(const Signature& signature) {
  const auto collective = static_cast<Collective>(signature.collective);
  if (collective == Collective::all_reduce) return name_of(static_cast<PartOf>(signature.root));
  return reduces(collective) ? std::string_view() : name_of(static_cast<PartOf>(signature.op));
}

}  // namespace

std::uint64_t first_message(std::uint64_t session) {
  return session & ~std::uint64_t{kMessageNumbers};
}

std::uint64_t device_message_number(std::uint64_t session) {
  return first_message(session) | kMessageNumbers;
}

bool is_message_of(const Signature& message, std::uint64_t session) {
  return (message.sequence & ~std::uint64_t{kMessageNumbers}) == first_message(session);
}

Signature signature_of_message(int from, std::uint64_t number, std::uint64_t count, DataType type) {
  Signature signature;
  signature.sequence = number;
  signature.count = count;
  signature.root = from;
  signature.collective = static_cast<std::uint8_t>(Collective::send);
  signature.algorithm = static_cast<std::uint8_t>(Algorithm::pairwise);
  signature.type = static_cast<std::uint8_t>(type);
  return signature;
}

Signature signature_of(const Call& call, Algorithm algorithm, int ranks) {
  Signature signature;
  signature.count = call.count;
  signature.root = has_root(call.collective) ? call.root : 0;
  if (call.counts != nullptr) signature.root = checksum_of(call.counts, ranks);
  // Which has no root, and a reduction.
  if (call.collective == Collective::all_reduce) {
    signature.root = static_cast<std::int32_t>(call.part_of);
  }
  signature.collective = static_cast<std::uint8_t>(call.collective);
  signature.algorithm = static_cast<std::uint8_t>(algorithm);
  signature.type = static_cast<std::uint8_t>(call.type);
  signature.op = reduces(call.collective) ? static_cast<std::uint8_t>(call.op)
                                          : static_cast<std::uint8_t>(call.part_of);
  return signature;
}

bool is_message_signature(const Signature& signature) {
  return is_message(static_cast<Collective>(signature.collective));
}

const char* const kUnmatchedMessage =
    "A message needs a send (or sendrecv) on one rank and a recv (or sendrecv) on the other; see "
    "whether the other rank makes that call, and names this rank. Two ranks that send to each "
    "other before they receive, "
    "also asynchronously, wait for each other if the messages are long: use sendrecv there.";

std::uint64_t number_after(std::uint64_t message) {
  return first_message(message) | ((message + 1) & kMessageNumbers);
}

std::string describe(const Signature& signature) {
  const auto collective = static_cast<Collective>(signature.collective);
  if (const std::string_view function = function_with(signature); !function.empty()) {
    return fmt::format("call {}, a part of {}", signature.sequence, function);
  }
  std::string arguments;
  if (collective != Collective::barrier) {
    arguments =
        fmt::format("{} x {}", signature.count, name(static_cast<DataType>(signature.type)));
  }
  if (reduces(collective)) {
    arguments += fmt::format(", {}", name(static_cast<ReduceOp>(signature.op)));
  }
  if (has_root(collective)) {
    arguments += fmt::format(", root {}", signature.root);
  } else if (is_message(collective)) {
    const std::uint64_t number = signature.sequence & kMessageNumbers;
    const std::string which =
        number == kMessageNumbers ? "a message" : fmt::format("message {}", number);
    return fmt::format("{} from rank {} ({})", which, signature.root, arguments);
  } else if (signature.root != 0) {
    arguments +=
        fmt::format(", counts with checksum {:x}", static_cast<std::uint32_t>(signature.root));
  }
  return fmt::format("call {} {}({}) by {}", signature.sequence, name(collective), arguments,
                     name(static_cast<Algorithm>(signature.algorithm)));
}

std::string describe(const Progress& progress) {
  return fmt::format("{} slices received, {} bytes sent", progress.slices_received,
                     progress.bytes_sent);
}

std::string text_of_timeout(const std::string& who, int peer, const Signature& call,
                            const std::string& so_far, const std::string& missing) {
  return fmt::format(
      "{} waited for rank {} until the deadline of {}; {}. {} If ranks are only slow, set a longer "
      "timeout (CallOptions, CommunicatorOptions or RONDO_TIMEOUT)",
      who, peer, describe(call), so_far, missing);
}

std::string text_of_mismatch(int rank, const Signature& mine, int peer, const Signature& theirs) {
  if (is_message_signature(mine) && is_message_signature(theirs)) {
    return fmt::format(
        "rank {} expects {}, but rank {} sent {}. Pass the same type and number of elements to "
        "send and recv, and make the messages between two ranks in the same order on both",
        rank, describe(mine), peer, describe(theirs));
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

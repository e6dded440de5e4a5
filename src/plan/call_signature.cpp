#include "plan/call_signature.hpp"

#include "base/collective_traits.hpp"

namespace rondo::detail {
namespace {

// The lower half of a message's number.
constexpr std::uint32_t kMessageNumbers = 0xffffffff;

// Returns a checksum that is never 0, since 0 means that the call has no counts (FNV-1a, on the
// bytes of each count).
std::int32_t checksum_of(const std::size_t* counts, int ranks) {
  std::uint32_t sum = 2166136261U;
  for (int rank = 0; rank < ranks; ++rank) {
    for (unsigned bit = 0; bit < 64; bit += 8) {
      sum = (sum ^ static_cast<std::uint8_t>(std::uint64_t{counts[rank]} >> bit)) * 16777619U;
    }
  }
  return static_cast<std::int32_t>(sum | 1U);
}

}  // namespace

std::uint64_t first_message(std::uint64_t session) {
  return session & ~std::uint64_t{kMessageNumbers};
}

std::uint64_t device_message_number(std::uint64_t session) {
  return first_message(session) | kAllMessages;
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

std::uint64_t number_after(std::uint64_t message) {
  return first_message(message) | ((message + 1) & kMessageNumbers);
}

std::uint64_t number_of_message(const Signature& message) {
  return message.sequence & kMessageNumbers;
}

bool is_message_signature(const Signature& signature) {
  return is_message(static_cast<Collective>(signature.collective));
}

}  // namespace rondo::detail

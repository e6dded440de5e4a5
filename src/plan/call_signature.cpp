#include "plan/call_signature.hpp"

#include "base/checksum.hpp"
#include "base/collective_traits.hpp"

namespace rondo::detail {
namespace {

// The lower half of a message's number.
constexpr std::uint32_t kMessageNumbers = 0xffffffff;

std::uint32_t checksum_of(const std::size_t* counts, int ranks) {
  SizesChecksum sum;
  for (int rank = 0; rank < ranks; ++rank) sum.add(counts[rank]);
  return sum.value();
}

// Where a call has both, the root takes so many bits, and a checksum the others.
constexpr unsigned kRootBits = 18;
constexpr std::uint32_t kRoots = (1U << kRootBits) - 1;

std::int32_t with_checksum(int root, std::uint32_t checksum) {
  std::uint32_t folded = checksum ^ (checksum << kRootBits);
  if (checksum != 0) folded |= 1U << kRootBits;  // it still differs from that of no sizes
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(root) | (folded & ~kRoots));
}

// Of what must be equal on all ranks: the size of an element, modulo 127, and whether it commutes.
std::uint8_t digest_of(const UserReduction& reduction) {
  constexpr std::size_t kSizes = 127;
  return static_cast<std::uint8_t>(2 * (reduction.element_bytes % kSizes) +
                                   (reduction.commutative ? 1 : 0));
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
  if (call.counts != nullptr) {
    const std::uint32_t sum = checksum_of(call.counts, ranks);
    signature.root = has_root(call.collective) ? with_checksum(signature.root, sum)
                                               : static_cast<std::int32_t>(sum);
  }
  if (call.received_counts != nullptr) {  // each rank has counts of its own
    signature.count = 0;
    signature.root = kCountsOfEachRank;
  }
  // Which has no root, and a reduction.
  if (call.collective == Collective::all_reduce) {
    signature.root = with_checksum(static_cast<int>(call.part_of), call.checksum);
  }
  signature.collective = static_cast<std::uint8_t>(call.collective);
  signature.algorithm = static_cast<std::uint8_t>(algorithm);
  signature.type = static_cast<std::uint8_t>(call.type);
  signature.op = reduces(call.collective) ? static_cast<std::uint8_t>(call.op)
                                          : static_cast<std::uint8_t>(call.part_of);
  if (call.reduction != nullptr) {
    signature.count = call.count * call.reduction->element_bytes;
    signature.type = kOfUser;
    signature.root ^= with_checksum(0, static_cast<std::uint32_t>(call.reduction->element_bytes));
    signature.op = digest_of(*call.reduction);
  }
  return signature;
}

std::uint64_t bytes_of(const Signature& signature) {
  if (signature.type == kOfUser) return signature.count;
  return signature.count * size_of(static_cast<DataType>(signature.type));
}

int root_of(const Signature& signature) {
  return static_cast<int>(static_cast<std::uint32_t>(signature.root) & kRoots);
}

std::uint32_t checksum_of(const Signature& signature) {
  const auto collective = static_cast<Collective>(signature.collective);
  const auto root = static_cast<std::uint32_t>(signature.root);
  const bool shares = has_root(collective) || collective == Collective::all_reduce;
  return shares ? root >> kRootBits : root;
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

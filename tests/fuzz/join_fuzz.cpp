// Gives arbitrary bytes to all that reads what another process, or a file, says while ranks join
// (libFuzzer).
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include <rondo/errors.hpp>

#include "bootstrap/contact.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/store_url.hpp"

namespace {

using namespace rondo::detail;

void require(bool holds) {
  if (!holds) std::abort();
}

// Rank 0 hears these bytes, in pieces whose sizes the bytes themselves say.
void interview(const std::string& secret, std::span<const std::uint8_t> bytes) {
  Introduction mine;
  mine.magic = kMagic;
  mine.byte_order = kByteOrder;
  mine.has_secret = secret.empty() ? 0 : 1;
  ServerHandshake interview(secret, {}, mine);
  while (!bytes.empty() && !interview.room().empty()) {
    const std::span<std::byte> room = interview.room();
    const std::size_t piece =
        std::min({static_cast<std::size_t>(bytes[0] % 64) + 1, bytes.size(), room.size()});
    std::memcpy(room.data(), bytes.data(), piece);
    interview.took(piece);
    bytes = bytes.subspan(piece);
  }
  require(secret.empty() || interview.hello() == nullptr);  // the secret is not among the bytes
  require(interview.hello() == nullptr || interview.objection().empty());
}

// A rank hears these bytes from what should be rank 0.
void hear_reply(std::span<const std::uint8_t> bytes) {
  Reply reply;
  std::memcpy(&reply, bytes.data(), std::min(bytes.size(), sizeof(reply)));
  static_cast<void>(objection_to(reply.introduction, Introduction{}));
  try {
    throw_refusal(reply);
    require(reply.verdict == Verdict::welcome);
  } catch (const rondo::Error&) {
  }
}

template <class Parse>
void parse(Parse what) {
  try {
    what();
  } catch (const rondo::UsageError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  const std::string text(bytes.begin(), bytes.end());
  switch (data[0] % 5) {
    case 0:
      interview("", bytes);
      break;
    case 1:
      interview("a secret", bytes);
      break;
    case 2:
      hear_reply(bytes);
      break;
    case 3:
      parse([&] { require(!parse_contact(text).token.empty()); });
      break;
    default:
      parse([&] { static_cast<void>(parse_store_url(text)); });
  }
  return 0;
}

#include "bootstrap/handshake.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/fnv1a.hpp"
#include "base/put.hpp"
#include "bootstrap/release.hpp"

namespace rondo::detail {
namespace {

std::uint32_t reversed(std::uint32_t word) {
  return (word >> 24U) | ((word >> 8U) & 0xFF00U) | ((word << 8U) & 0xFF0000U) | (word << 24U);
}

// What another process sent as a text, as far as it can be printed.
template <std::size_t N>
std::string printable(const std::array<char, N>& text) {
  std::string result;
  for (const char letter : text) {
    if (letter < ' ' || letter > '~') break;
    result += letter;
  }
  return result;
}

}  // namespace

Introduction introduce(bool has_secret) {
  Introduction mine;
  mine.magic = kMagic;
  mine.byte_order = kByteOrder;
  mine.has_secret = has_secret ? 1 : 0;
  static_assert(kRelease.size() < sizeof(mine.version));
  put(mine.version, kRelease);
  mine.nonce = fresh_nonce();
  return mine;
}

std::string objection_to(const Introduction& theirs, const Introduction& mine) {
  if (theirs.magic != mine.magic) return "it does not speak Rondo's protocol";
  if (theirs.byte_order == reversed(mine.byte_order)) {
    return "its machine has another byte order";
  }
  if (theirs.version != mine.version || theirs.byte_order != mine.byte_order) {
    return fmt::format("it is Rondo {}, and this is Rondo {}", printable(theirs.version),
                       printable(mine.version));
  }
  if ((theirs.has_secret != 0) != (mine.has_secret != 0)) {
    return fmt::format("it was given {} secret, and this process {} (RONDO_SECRET)",
                       theirs.has_secret != 0 ? "a" : "no", mine.has_secret != 0 ? "one" : "none");
  }
  return {};
}

Run run_name(const std::string& name) {
  Run run{};
  put(run, name);
  if (name.size() < run.size()) return run;
  const std::string hash = fmt::format("#{:016x}", fnv1a(name));
  std::copy(hash.begin(), hash.end(), run.end() - 1 - static_cast<std::ptrdiff_t>(hash.size()));
  return run;
}

Proof prove_for(Speaker speaker, const std::string& secret, const Nonce& ranks_nonce,
                const Nonce& firsts_nonce, std::int32_t rank, std::int32_t size) {
  if (secret.empty()) return {};
  std::vector<std::uint8_t> message = {static_cast<std::uint8_t>(speaker)};
  message.insert(message.end(), ranks_nonce.begin(), ranks_nonce.end());
  message.insert(message.end(), firsts_nonce.begin(), firsts_nonce.end());
  for (const std::int32_t number : {rank, size}) {
    const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(number)>>(number);
    message.insert(message.end(), bytes.begin(), bytes.end());
  }
  return prove(secret, message);
}

std::string text_of(const Run& run) {
  const std::string text = printable(run);
  return text.empty() ? "one without a name" : text;
}

Reply answer_for(const std::exception_ptr& refusal) {
  Reply answer;
  answer.kind = Reply::Kind::answer;
  if (refusal == nullptr) return answer;
  try {
    std::rethrow_exception(refusal);
  } catch (const UsageError& error) {
    answer.verdict = Verdict::usage;
    put(answer.reason, error.what());
  } catch (const TimeoutError& error) {
    answer.verdict = Verdict::timeout;
    put(answer.reason, error.what());
  } catch (const std::exception& error) {
    answer.verdict = Verdict::transport;
    put(answer.reason, error.what());
  }
  return answer;
}

void throw_refusal(Reply answer) {
  answer.reason.back() = '\0';
  // It may come from anybody.
  for (char& letter : answer.reason) {
    if (letter > 0 && letter < ' ') letter = '?';
  }
  const char* reason = answer.reason.data();
  switch (answer.verdict) {
    case Verdict::welcome:
      return;
    case Verdict::usage:
      throw UsageError(reason);
    case Verdict::timeout:
      throw TimeoutError(reason);
    default:
      throw TransportError(reason);
  }
}

ServerHandshake::ServerHandshake(std::string secret, const Run& run, const Introduction& mine,
                                 bool one_run)
    : secret_(std::move(secret)), run_(run), mine_(mine), one_run_(one_run) {}

std::span<std::byte> ServerHandshake::room() {
  if (proven_ || !objection_.empty()) return {};
  const std::span<std::byte> message = introduced_ ? std::as_writable_bytes(std::span(&hello_, 1))
                                                   : std::as_writable_bytes(std::span(&theirs_, 1));
  return message.subspan(received_);
}

std::optional<Reply> ServerHandshake::took(std::size_t bytes) {
  received_ += bytes;
  if (!introduced_ && received_ >= kMagic.size() && theirs_.magic != kMagic) {
    objection_ = objection_to(theirs_, mine_);  // whoever this is may never send as much as a rank
    return std::nullopt;
  }
  if (!room().empty()) return std::nullopt;
  received_ = 0;
  return introduced_ ? judge_hello() : std::optional(judge_introduction());
}

Reply ServerHandshake::reply(Reply::Kind kind) const {
  Reply reply;
  reply.introduction = mine_;
  reply.kind = kind;
  reply.run = run_;
  return reply;
}

Reply ServerHandshake::judge_introduction() {
  introduced_ = true;
  objection_ = objection_to(theirs_, mine_);
  return reply(Reply::Kind::introduction);  // from which the stranger draws the same conclusion
}

std::optional<Reply> ServerHandshake::judge_hello() {
  const auto proof_of = [&](Speaker speaker) {
    return prove_for(speaker, secret_, theirs_.nonce, mine_.nonce, hello_.rank, hello_.size);
  };
  // The run is compared before the secret, which another run does not know. A rank whose user has
  // given rank, size and address by hand has no run.
  const bool names_both = hello_.run != Run{} && run_ != Run{};
  if (hello_.run != run_ && (names_both || one_run_)) {
    objection_ = fmt::format("it belongs to another run: {}, and this is {}", text_of(hello_.run),
                             text_of(run_));
    return reply(Reply::Kind::another_run);
  }
  if (!secret_.empty() && !same(hello_.proof, proof_of(Speaker::rank))) {
    objection_ = fmt::format("it came as rank {} with another secret (RONDO_SECRET)", hello_.rank);
    Reply refusal = answer_for(std::make_exception_ptr(TransportError(
        "rank 0 was given another secret (RONDO_SECRET), so this rank was refused")));
    refusal.introduction = mine_;
    refusal.run = run_;
    return refusal;
  }
  proven_ = true;
  Reply welcome = reply(Reply::Kind::welcome);
  welcome.proof = proof_of(Speaker::first);
  return welcome;
}

}  // namespace rondo::detail

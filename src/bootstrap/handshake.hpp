// What a rank and rank 0 say to each other when the rank has connected, and how both check it.
//
//   the rank                                        rank 0
//   Introduction: protocol, version, nonce c   -->
//                                              <--  Reply::introduction: the same, with nonce s
//   Hello: rank, size, process, run, proof     -->
//                                              <--  Reply::welcome: proof; the rank has its place
//   ... when all ranks have come, or rank 0 gives up:
//                                              <--  Reply::answer: go on, or the reason
//
// A proof is a keyed hash over both nonces, who speaks, rank and size; the key is the secret. It
// cannot be used again, since nonces differ each time. Without a secret there are no proofs: then
// who may connect is decided elsewhere.
//
// The run is the launcher's name for these processes (a job and its step, say). Another run may
// have computed the same port, or have been given the same address: a rank that comes there learns
// that, and tries the next port, if there are others. An Introduction has the same form in all
// releases; what comes after it depends on the release that it names.
//
// Rank 0 may give its answer at any point. Nothing here uses a socket, so tests and a fuzzer can
// drive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "bootstrap/proof.hpp"

namespace rondo::detail {

inline constexpr std::array<char, 8> kMagic = {'r', 'o', 'n', 'd', 'o', 'j', 'o', 'n'};
inline constexpr std::uint32_t kByteOrder = 0x01020304;

struct Introduction {
  std::array<char, 8> magic{};
  std::uint32_t byte_order = 0;
  std::uint32_t has_secret = 0;
  std::array<char, 16> version{};
  Nonce nonce{};
};
static_assert(sizeof(Introduction) == 64);

// Returns the introduction of this process. Throws TransportError.
Introduction introduce(bool has_secret);
// Returns why these two cannot go on together; empty if they can. `theirs` may hold any bytes.
std::string objection_to(const Introduction& theirs, const Introduction& mine);

// The name of a run; empty where nothing names it.
using Run = std::array<char, 128>;
// Names that are too long are cut, and end with a hash of the whole.
Run run_name(const std::string& name);
// As errors have it. `run` may hold any bytes.
std::string text_of(const Run& run);

struct Hello {
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::uint64_t process = 0;  // random: by it rank 0 knows a rank that comes again
  Run run{};
  Proof proof{};
};
static_assert(sizeof(Hello) == 176);

// The answer of rank 0 to all that have come: go on, or which error its text is.
enum class Verdict : std::uint32_t { welcome, usage, timeout, transport };

struct Reply {
  enum class Kind : std::uint32_t { introduction, welcome, answer, another_run };
  Introduction
      introduction{};  // in every reply, so that the first one shows who speaks, whatever its kind
  Kind kind = Kind::introduction;
  Verdict verdict = Verdict::welcome;
  Proof proof{};
  Run run{};  // rank 0's
  std::array<char, 512> reason{};
};
static_assert(std::is_trivially_copyable_v<Reply>);

enum class Speaker : std::uint8_t { rank = 1, first = 2 };
// Returns a proof of zeros if there is no secret.
Proof prove_for(Speaker speaker, const std::string& secret, const Nonce& ranks_nonce,
                const Nonce& firsts_nonce, std::int32_t rank, std::int32_t size);

// Makes the answer for this error. Null means that all ranks are welcome.
Reply answer_for(const std::exception_ptr& refusal);
// Throws the error that the answer has, if it has one. `answer` may hold any bytes.
void throw_refusal(Reply answer);

// Rank 0's side of the handshake with a stranger: a process that has connected, and has not proven
// yet that it is a rank.
class ServerHandshake {
 public:
  // `one_run`: whether a stranger without a run is sent away, too, where this rank 0 has one, or
  // the other way round.
  ServerHandshake(std::string secret, const Run& run, const Introduction& mine,
                  bool one_run = false);

  // Where the bytes that come next belong; empty once the handshake is over.
  [[nodiscard]] std::span<std::byte> room();
  // That many bytes have come into room(). Returns what to send back, if anything.
  std::optional<Reply> took(std::size_t bytes);

  // Why the stranger must go; empty as long as it may stay.
  [[nodiscard]] const std::string& objection() const { return objection_; }
  // Whether the stranger speaks as a rank does.
  [[nodiscard]] bool introduced() const { return introduced_ && objection_.empty(); }
  // Null until the stranger has proven who it is.
  [[nodiscard]] const Hello* hello() const { return proven_ ? &hello_ : nullptr; }

 private:
  [[nodiscard]] Reply reply(Reply::Kind kind) const;
  Reply judge_introduction();
  std::optional<Reply> judge_hello();

  std::string secret_;
  Run run_;
  Introduction mine_;
  bool one_run_;
  Introduction theirs_;
  Hello hello_;
  std::size_t received_ = 0;  // of the message that is coming
  bool introduced_ = false;
  bool proven_ = false;
  std::string objection_;
};

}  // namespace rondo::detail

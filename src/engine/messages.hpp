// Messages: calls between two ranks, which have numbers of their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <rondo/call.hpp>

#include "engine/context.hpp"
#include "engine/ending.hpp"

namespace rondo::detail {

class Messages {
 public:
  Messages(Context& context, Ending& ending);

  // A send, a recv or a sendrecv. Throws as Engine::run.
  void run(const Call& call, std::chrono::milliseconds timeout);

 private:
  void run_one(const Call& call, std::chrono::milliseconds timeout);
  // Sends and receives, neither of which waits for the other.
  void run_sendrecv(const Call& call, std::chrono::milliseconds timeout);
  // `in_progress`: set to the signature of the message that this rank waits for.
  void exchange(const Call& send, const Signature& sent, const Call& recv,
                const Signature& expected, Signature& in_progress);
  // The signature of this rank's next message to, or from, the other one.
  Signature next_message(const Call& message);

  Context& context_;
  Ending& ending_;
  // Messages so far, by the rank at the other end.
  std::vector<std::uint64_t> messages_to_;
  std::vector<std::uint64_t> messages_from_;
};

}  // namespace rondo::detail

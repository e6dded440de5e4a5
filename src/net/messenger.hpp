// Messages between ranks. This is what the pump and the measuring of links need of a network
// library.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rondo/errors.hpp>

#include "base/rank_pair.hpp"

namespace rondo::detail {

// A message that is on its way, in the library's words.
struct Operation {
  void* handle = nullptr;
  bool under_way = false;
};

// An operation among others that are looked at together, and what an error says of it.
struct Pending {
  Operation* operation = nullptr;
  const char* what = "";
  int peer = kAnyPeer;
};

// The process of a rank has ended, or its host is not reached any more. The engine finds out more,
// and throws PeerError.
class ConnectionLost final : public TransportError {
 public:
  ConnectionLost(int peer, const std::string& text) : TransportError(text), peer_(peer) {}
  [[nodiscard]] int peer() const { return peer_; }

 private:
  int peer_;
};

// connect() throws this if this rank has a connection to each of the others, and some of the others
// lack a connection. Their errors say more.
class OthersNotConnected final : public TransportError {
 public:
  using TransportError::TransportError;
};

// Messages of one sender with one tag arrive in their order. Memory belongs to the messenger until
// the operation has ended. All functions throw TransportError, with the peer's rank if there is
// one.
class Messenger {
 public:
  Messenger() = default;
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;
  // Gives everything back to the library. Destroy a messenger only when no operation is under way,
  // here or at a peer. Otherwise never destroy it: then the number of its communicator is never
  // used again.
  virtual ~Messenger() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  // When a send ends: its memory may be used again, and the message arrives although this rank may
  // look no more; or the receiver has also begun to take the message.
  enum class Delivery : std::uint8_t { sent, taken };
  [[nodiscard]] virtual Operation send(int peer, int tag, const void* data, std::size_t bytes,
                                       Delivery delivery) = 0;
  // `peer` may be kAnyPeer. A message may have fewer bytes.
  [[nodiscard]] virtual Operation receive(int peer, int tag, void* data, std::size_t bytes) = 0;

  // Looks at the network once; closes the operations that have ended, and sets `ended` to their
  // positions. One that has failed is thrown when no other has ended: so none that has ended is
  // forgotten.
  virtual void look(std::span<const Pending> pending, std::vector<std::size_t>& ended) = 0;
  // Looks at one operation; true when it has ended, and if it was not under way.
  bool has_ended(Operation& operation, const char* what, int peer);
  // Looks at several operations; true when all have ended. `peers`: the peer of each; empty: any.
  bool have_ended(std::vector<Operation>& operations, const char* what,
                  std::span<const int> peers = {});
  // Whether `peer` has said, by connect()'s means, that it has destroyed its messenger. What it had
  // sent before has come by then.
  [[nodiscard]] virtual bool has_left(int /*peer*/) { return false; }
  // After this call the operation ends soon, whether its message has come or not.
  virtual void cancel(Operation& operation) = 0;

  // The operation's memory is never used again, and nobody looks at the operation any more: spares
  // the library the search through what nobody waits for, where that is possible.
  virtual void abandon(Operation& /*operation*/) noexcept {}
  // Makes connections, so that messages to and from these ranks need no more help of this rank on
  // their way. Throws OthersNotConnected if only other ranks lack a connection. Collective.
  virtual void connect(const std::vector<int>& ranks) = 0;
  // Sets how long connect(), and what measures links, wait for other ranks: a minute, or `timeout`
  // if that is shorter. MPI's connect() waits without a deadline.
  void set_patience(std::chrono::milliseconds timeout) { patience_ = std::min(patience_, timeout); }
  [[nodiscard]] std::chrono::milliseconds patience() const { return patience_; }
  // These make a messenger between the same ranks, or between some of them in this order. Its
  // messages do not meet those of this messenger. `session`: the group's, which no other group has.
  // Collective over these ranks.
  virtual std::unique_ptr<Messenger> another(std::uint64_t session) = 0;
  virtual std::unique_ptr<Messenger> among(const std::vector<int>& ranks,
                                           std::uint64_t session) = 0;

  // Whether it may be destroyed although operations are under way, or messages that nobody takes:
  // if their memory stays, they do no harm, since no messenger that is made later gets what was
  // sent to this one.
  [[nodiscard]] virtual bool may_end_any_time() const { return false; }

  // Whether the messages go by MPI, which then goes on with the program's own messages, too. MPI
  // may write to a socket of a process that has ended (base/write_signals.hpp).
  [[nodiscard]] virtual bool drives_mpi() const { return false; }
  // False once the program has shut down the library.
  [[nodiscard]] virtual bool can_be_used() const = 0;
  // Returns why the calling thread may not use the messenger; empty if it may. Where MPI takes
  // calls of one thread at a time, the program keeps its other threads out of MPI meanwhile, which
  // is not checked.
  [[nodiscard]] virtual std::string objection_to_this_thread() const = 0;
  // Returns the same for Rondo's progress thread, which may use the network's library at the same
  // time as the program.
  [[nodiscard]] virtual std::string objection_to_progress_thread() const = 0;

 private:
  std::chrono::milliseconds patience_ = std::chrono::minutes(1);
  // Used by has_ended() and have_ended() alone; members, so that these allocate nothing.
  std::vector<Pending> pending_;
  std::vector<std::size_t> ended_;
};

}  // namespace rondo::detail

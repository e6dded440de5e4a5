// A process that has connected to rank 0, and has not proven yet that it is a rank.
#pragma once

#include <string>
#include <utility>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/handshake.hpp"

namespace rondo::detail {

class Stranger {
 public:
  Stranger(FileDescriptor socket, std::string name, ServerHandshake handshake)
      : socket_(std::move(socket)), name_(std::move(name)), handshake_(std::move(handshake)) {}

  [[nodiscard]] const FileDescriptor& socket() const { return socket_; }
  FileDescriptor take_socket() { return std::move(socket_); }
  // Returns what errors call it.
  [[nodiscard]] const std::string& name() const { return name_; }
  // Null until the stranger has proven who it is.
  [[nodiscard]] const Hello* hello() const { return handshake_.hello(); }
  [[nodiscard]] Clock::time_point came() const { return came_; }
  // Whether it may be sent away, so that others can come: whoever has said nothing, and whoever
  // does not go on.
  [[nodiscard]] bool may_be_sent_away(Clock::time_point now) const;

  // Reads what has arrived, and replies. Returns why the stranger must go; empty if it may stay.
  std::string read_and_reply();

 private:
  void say(const Reply& reply) const;

  FileDescriptor socket_;
  std::string name_;
  ServerHandshake handshake_;
  Clock::time_point came_ = Clock::now();
};

}  // namespace rondo::detail

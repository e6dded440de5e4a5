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
  Stranger(FileDescriptor socket, std::string name, const std::string& secret, const Run& run,
           bool one_run)
      : socket_(std::move(socket)),
        name_(std::move(name)),
        handshake_(secret, run, introduce(!secret.empty()), one_run) {}

  [[nodiscard]] const FileDescriptor& socket() const { return socket_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Hello* hello() const { return handshake_.hello(); }
  FileDescriptor take_socket() { return std::move(socket_); }
  [[nodiscard]] Clock::time_point came() const { return came_; }
  // Whether it may be sent away, so that others can come: whoever has said nothing, and whoever
  // does not go on.
  [[nodiscard]] bool may_be_sent_away(Clock::time_point now) const;

  // Reads what has arrived, and replies. Returns why the stranger must go; empty if it may stay.
  std::string listen();

 private:
  void say(const Reply& reply) const;

  FileDescriptor socket_;
  std::string name_;
  ServerHandshake handshake_;
  Clock::time_point came_ = Clock::now();
};

}  // namespace rondo::detail

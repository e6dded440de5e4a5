// A process that rondo-launch has started: a rank, or the connection to another host.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"

namespace rondo::launcher {

using rondo::detail::FileDescriptor;

// What a process writes, cut into lines, each with a prefix. Without a prefix no byte is added.
class Lines {
 public:
  Lines(FileDescriptor from, std::string prefix);

  [[nodiscard]] int fd() const { return from_.get(); }
  [[nodiscard]] bool open() const { return from_.valid(); }
  // The lines that have arrived; closes at the end of what the process writes.
  std::string take();
  // What has arrived without the end of a line; closes.
  std::string end();

 private:
  // The part of a line, whose end does not come.
  std::string take_part();

  FileDescriptor from_;
  std::string prefix_;
  std::string part_;
};

struct Process {
  pid_t id = -1;
  std::string name;           // "rank 3" or "host b"
  bool is_host = false;       // the connection to another host's rondo-launch
  FileDescriptor input;       // to that rondo-launch; does not block
  std::string to_tell;        // what it has not taken yet
  std::vector<Lines> output;  // its standard output, and what it writes as errors
  bool ended = false;

  // Signals the process and all that it has started in its group; another host's ranks by a
  // message.
  void send(int signal);
  // Another host's rondo-launch reads this text, perhaps later: what it does not take at once is
  // kept, for tell_more().
  void tell(const std::string& text);
  void tell_more();
};

struct Start {
  std::string name;
  std::string prefix;
  std::string folder;  // empty: this one
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> command;
  std::vector<int> hardware_threads;  // that it is bound to; empty: not bound
  bool is_host = false;
};

// A rank's standard output is a terminal, as below mpirun, so that each line comes as soon as it is
// written: to a pipe, C and C++ write only blocks of some KiB. Where the system has no more
// terminals, it is a pipe all the same. The process is in a group of its own, and is killed if this
// one ends. A program that cannot be started ends with the code that a shell gives, 126 or 127, and
// says why. Throws std::system_error.
Process start(const Start& what);

}  // namespace rondo::launcher

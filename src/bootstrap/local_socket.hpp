// Unix sockets between processes of one user on one host: who is at the other end, and how to hand
// a file over.
#pragma once

#include <sys/un.h>

#include <cstddef>
#include <string>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"

namespace rondo::detail {

// A stream socket that does not block. Throws TransportError.
FileDescriptor make_local_socket();

// Returns the address of a socket in the file system. Throws UsageError if the path is empty or too
// long.
sockaddr_un path_address(const std::string& path);

// Whether it is a Unix socket.
bool is_local(const FileDescriptor& socket);

// Says why the process at the other end is not trusted: it belongs to another user. Returns an
// empty text if it belongs to this one.
std::string objection_to_peer(const FileDescriptor& socket);

// An open file that processes of the same user fetch by a name: nobody else gets it, and nothing of
// it stays when this process ends, however it ends.
class FileOffer {
 public:
  // Throws TransportError.
  explicit FileOffer(const FileDescriptor& file);

  [[nodiscard]] const std::string& name() const { return name_; }
  // Hands the file to `receivers` processes that have called ask_for_file, or fewer if the deadline
  // passes.
  void give(int receivers, Clock::time_point deadline) const;
  // Returns the connection of the next process that has called ask_for_file; none if the deadline
  // passes, or if no descriptor is left.
  [[nodiscard]] FileDescriptor accept(Clock::time_point deadline) const;

 private:
  const FileDescriptor& file_;
  std::string name_;
  FileDescriptor listener_;
};

// Asks for the file that is offered by this name; waits, until the deadline at most, only while too
// many others ask. Throws TransportError.
FileDescriptor ask_for_file(const std::string& name, Clock::time_point deadline);
// Gives a file to the process at the other end; false if that is gone.
bool send_file(const FileDescriptor& to, const FileDescriptor& file);
// Returns the file as soon as the other side gives it. Throws TransportError.
FileDescriptor receive_file(const FileDescriptor& asked, Clock::time_point deadline);

}  // namespace rondo::detail

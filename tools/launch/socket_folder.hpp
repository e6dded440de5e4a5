// Where ranks of one host meet.
#pragma once

#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace rondo::launch {

// Makes a folder for the socket "socket", and returns its name, which begins with `name`: in that
// of temporary files, or in /tmp where the path of the socket would become too long. Throws
// std::runtime_error.
inline std::string make_socket_folder(const std::string& name) {
  const std::string end = "/" + name + "-XXXXXX";
  const std::size_t most = sizeof(sockaddr_un::sun_path) - 1 - std::strlen("/socket") - end.size();
  const char* named = std::getenv("TMPDIR");
  const std::string wanted = named == nullptr || *named == '\0' ? "/tmp" : named;
  const bool fits = wanted.size() <= most;
  std::string folder = (fits ? wanted : "/tmp") + end;
  if (::mkdtemp(folder.data()) != nullptr) return folder;
  const std::string why = "cannot make " + folder + ": " + std::strerror(errno);
  throw std::runtime_error(
      fits ? why + "; set TMPDIR to a folder that is there and may be written to"
           : why + ", and the path in TMPDIR is too long for a socket: set one of at most " +
                 std::to_string(most) + " letters");
}

}  // namespace rondo::launch

#include "write_file.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace rondo::launch {

// What the stream still holds is written, and may fail, when it is closed.
void write_file(const std::string& file, const std::string& text) {
  errno = 0;
  std::ofstream out(file);
  out << text;
  out.close();
  if (out) return;
  const int code = errno;
  throw std::runtime_error("'" + file + "' cannot be written: " + std::strerror(code));
}

void report_full_files() { std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace rondo::launch

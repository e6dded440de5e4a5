#include "bench/perf/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace rondo::perf {

ProgressLine::ProgressLine(bool shows, std::size_t steps)
    : shows_(shows && ::isatty(STDERR_FILENO) != 0), steps_(steps) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::next(const std::string& algo, std::uint64_t bytes) {
  ++step_;
  if (!shows_) return;
  fmt::print(stderr, "\r\033[K{} of {}: {} bytes by {} ...", step_, steps_, bytes, algo);
  std::fflush(stderr);
}

void ProgressLine::clear() const {
  if (!shows_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace rondo::perf

// Shows on a terminal what is being measured, in a line that the next output replaces.
#pragma once

#include <cstdint>
#include <string>

namespace rondo::perf {

class ProgressLine {
 public:
  // Shows anything only if `shows`, and standard error is a terminal.
  ProgressLine(bool shows, std::size_t steps);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  void next(const std::string& algo, std::uint64_t bytes);
  void clear() const;

 private:
  bool shows_;
  std::size_t steps_;
  std::size_t step_ = 0;
};

}  // namespace rondo::perf

// What rondo-launch shows on one of its standard streams. Whoever reads that may be slow, or not
// read at all; rondo-launch goes on all the same, and hears signals: a thread of its own does the
// writing.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/file_descriptor.hpp"

namespace rondo::launcher {

class Output {
 public:
  explicit Output(int to);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();  // does not wait for what is still to be written

  // Never waits.
  void put(const std::string& text);
  // Whether more should be put: ranks wait where this output is full, as they would wait for its
  // reader.
  [[nodiscard]] bool has_room() const;
  [[nodiscard]] bool all_written() const;
  // Nobody will read it any more; what is put is dropped.
  [[nodiscard]] bool reader_is_gone() const;
  // Why something could not be written, which is lost (a disk is full, say); once. Empty if nothing
  // was lost.
  [[nodiscard]] std::string take_loss();
  // Becomes readable when something was written, or the reader has gone.
  [[nodiscard]] int news() const;
  // After it was readable.
  void take_news();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // with the thread, which may outlive this object
};

}  // namespace rondo::launcher

// The ranks of one host learn from this board that their communicator has ended, and why. It lies
// in memory that they share; zeroed memory is a board on which nothing is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rondo::detail {

struct AbortRecord {
  int rank = 0;
  std::string text;
};

class AbortBoard {
 public:
  // Any thread of any rank may call it; only the text of the first call is kept. Returns whether
  // this was the first.
  bool raise(int rank, std::string_view text) noexcept;
  [[nodiscard]] bool raised() const noexcept;
  // For engine/touching.hpp. is_clear_in_order(): whether no rank has begun to raise the board; a
  // sequentially consistent load, which comes after the caller's begin_touching().
  // order_after_raise(): called by a rank that has raised the board or found it raised, before it
  // asks is_touching(); a sequentially consistent read-modify-write that leaves the state as it is.
  // So at least one of the two ranks sees what the other wrote.
  [[nodiscard]] bool is_clear_in_order() const noexcept;
  void order_after_raise() noexcept;
  // Returns what was raised. Call it only after raised().
  [[nodiscard]] AbortRecord read() const;

 private:
  // kClear → kWriting by the one thread whose compare-exchange succeeds; kWriting → kRaised by a
  // release store after the text is written. Readers load the state with acquire before they read
  // the text.
  static constexpr std::uint32_t kClear = 0;
  static constexpr std::uint32_t kWriting = 1;
  static constexpr std::uint32_t kRaised = 2;

  mutable std::uint32_t state_ = kClear;
  std::int32_t rank_ = 0;
  std::uint32_t length_ = 0;
  char text_[1012] = {};
};
static_assert(sizeof(AbortBoard) == 1024);

}  // namespace rondo::detail

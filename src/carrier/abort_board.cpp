#include "carrier/abort_board.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace rondo::detail {

bool AbortBoard::raise(int rank, std::string_view text) noexcept {
  std::uint32_t expected = kClear;
  const std::atomic_ref state(state_);
  if (!state.compare_exchange_strong(expected, kWriting, std::memory_order_relaxed)) return false;
  rank_ = rank;
  length_ = static_cast<std::uint32_t>(std::min(text.size(), sizeof(text_)));
  std::memcpy(text_, text.data(), length_);
  state.store(kRaised, std::memory_order_release);
  return true;
}

bool AbortBoard::raised() const noexcept {
  return std::atomic_ref(state_).load(std::memory_order_acquire) == kRaised;
}

bool AbortBoard::is_clear_in_order() const noexcept {
  return std::atomic_ref(state_).load(std::memory_order_seq_cst) == kClear;
}

void AbortBoard::order_after_raise() noexcept {
  std::atomic_ref(state_).fetch_or(0, std::memory_order_seq_cst);
}

AbortRecord AbortBoard::read() const {
  return {rank_, std::string(text_, std::min<std::size_t>(length_, sizeof(text_)))};
}

}  // namespace rondo::detail

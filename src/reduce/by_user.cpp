#include "reduce/by_user.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace rondo::detail {
namespace {

// Two copies of a piece of elements, which stay in the L1 cache while they are reduced.
class Pieces {
 public:
  explicit Pieces(std::size_t element_bytes)
      : elems_(std::max<std::size_t>(kBytes / element_bytes, 1)) {
    if (element_bytes <= kBytes) return;
    const std::size_t each = (element_bytes + kAlignment - 1) / kAlignment * kAlignment;
    large_.reset(static_cast<std::byte*>(::operator new(2 * each, std::align_val_t{kAlignment})));
    first_ = large_.get();
    second_ = first_ + each;
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  [[nodiscard]] std::size_t elems() const { return elems_; }
  [[nodiscard]] std::byte* first() const { return first_; }
  [[nodiscard]] std::byte* second() const { return second_; }
  void swap() { std::swap(first_, second_); }

 private:
  static constexpr std::size_t kBytes = 4096;
  static constexpr std::size_t kAlignment = 64;
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete(memory, std::align_val_t{kAlignment});
    }
  };

  std::size_t elems_;
  alignas(
      kAlignment) std::array<std::byte, 2 * kBytes> small_;  // NOLINT: written before it is read
  std::unique_ptr<std::byte, Free> large_;
  std::byte* first_ = small_.data();
  std::byte* second_ = small_.data() + kBytes;
};

void call(const UserReduction& reduction, const std::byte* in, std::byte* in_out,
          std::size_t count) {
  try {
    reduction.combine(in, in_out, count);
  } catch (...) {
    throw ThrownByProgram(std::current_exception());
  }
}

}  // namespace

void combine_by(const UserReduction& reduction, std::byte* dst, std::byte* also, const std::byte* a,
                const std::byte* b, std::size_t count) {
  const std::size_t bytes = count * reduction.element_bytes;
  if (dst == a) {  // which the function may not write
    Pieces pieces(reduction.element_bytes);
    for (std::size_t done = 0; done < count; done += pieces.elems()) {
      const std::size_t elems = std::min(pieces.elems(), count - done);
      const std::size_t at = done * reduction.element_bytes;
      std::memcpy(pieces.first(), b + at, elems * reduction.element_bytes);
      call(reduction, a + at, pieces.first(), elems);
      std::memcpy(dst + at, pieces.first(), elems * reduction.element_bytes);
    }
  } else {
    if (dst != b) std::memcpy(dst, b, bytes);
    call(reduction, a, dst, count);
  }
  if (also != nullptr) std::memcpy(also, dst, bytes);
}

void fold_by(const UserReduction& reduction, const FoldOperands& operands, std::size_t count) {
  Pieces pieces(reduction.element_bytes);
  for (std::size_t done = 0; done < count; done += pieces.elems()) {
    const std::size_t elems = std::min(pieces.elems(), count - done);
    const std::size_t at = done * reduction.element_bytes;
    const std::size_t bytes = elems * reduction.element_bytes;
    std::memcpy(pieces.first(), operands.ins[0] + at, bytes);
    for (std::size_t k = 1; k < operands.in_count; ++k) {
      std::memcpy(pieces.second(), operands.ins[k] + at, bytes);
      call(reduction, pieces.first(), pieces.second(), elems);
      pieces.swap();
    }
    for (std::size_t j = 0; j < operands.out_count; ++j) {
      std::memcpy(operands.outs[j] + at, pieces.first(), bytes);
    }
  }
}

}  // namespace rondo::detail

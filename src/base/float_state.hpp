// How this thread rounds, what it does with numbers that are almost zero, and which exceptions stop
// it, while this object lives: as IEEE 754 has it by default, whatever the program has set. Each
// rank may reduce the same elements for itself, and all must get the same bits. The program gets
// back what it had; on x86, where they are in the same register, also which exceptions had
// occurred.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace rondo::detail {

class FloatState {
 public:
  // Does nothing where this thread does not compute with floating-point numbers.
  explicit FloatState(bool computes) : computes_(computes), before_(computes ? read() : kDefault) {
    if ((before_ & kControls) != kDefault) write(kDefault);
  }
  FloatState(const FloatState&) = delete;
  FloatState& operator=(const FloatState&) = delete;
  ~FloatState() {
    // Where exceptions are in the same register, writing it costs less than reading whether one has
    // occurred.
    const bool may_differ = kHasExceptions ? computes_ : (before_ & kControls) != kDefault;
    if (may_differ) write(before_);
  }

 private:
#if defined(__x86_64__)
  // The register also has the exceptions that have occurred, in its lowest six bits.
  static constexpr bool kHasExceptions = true;
  static constexpr std::uint64_t kControls = 0xFFC0;
  static constexpr std::uint64_t kDefault = 0x1F80;
  static std::uint64_t read() { return _mm_getcsr(); }
  static void write(std::uint64_t state) { _mm_setcsr(static_cast<unsigned>(state)); }
#elif defined(__aarch64__)
  // FPCR alone: it has no bits but controls. Exceptions that have occurred are in another register.
  static constexpr bool kHasExceptions = false;
  static constexpr std::uint64_t kControls = ~std::uint64_t{0};
  static constexpr std::uint64_t kDefault = 0;
  static std::uint64_t read() {
    std::uint64_t state = 0;
    asm volatile("mrs %0, fpcr" : "=r"(state));
    return state;
  }
  static void write(std::uint64_t state) { asm volatile("msr fpcr, %0" : : "r"(state)); }
#else
  static constexpr bool kHasExceptions = false;
  static constexpr std::uint64_t kControls = 0;
  static constexpr std::uint64_t kDefault = 0;
  static std::uint64_t read() { return 0; }
  static void write(std::uint64_t /*state*/) {}
#endif

  bool computes_;
  std::uint64_t before_;
};

}  // namespace rondo::detail

// How this thread rounds, what it does with numbers that are almost zero, and which exceptions stop it, while this object
// lives: as IEEE 754 has it by default, whatever the program has set. Each rank may reduce the same elements for itself,
// and all must get the same bits.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace rondo::detail {

class FloatState {
 public:
  FloatState() : before_(read()) {
    if ((before_ & kControls) != kDefault) write(kDefault);
  }
  FloatState(const FloatState&) = delete;
  FloatState& operator=(const FloatState&) = delete;
  ~FloatState() {
    if (read() != before_) write(before_);
  }

 private:
#if defined(__x86_64__)
  // The register also has the exceptions that have occurred, in its lowest six bits; the program's are given back.
  static constexpr std::uint64_t kControls = 0xFFC0;
  static constexpr std::uint64_t kDefault = 0x1F80;
  static std::uint64_t read() { return _mm_getcsr(); }
  static void write(std::uint64_t state) { _mm_setcsr(static_cast<unsigned>(state)); }
#elif defined(__aarch64__)
  // FPCR alone: it has no bits but controls. Exceptions that have occurred are in another register.
  static constexpr std::uint64_t kControls = ~std::uint64_t{0};
  static constexpr std::uint64_t kDefault = 0;
  static std::uint64_t read() {
    std::uint64_t state = 0;
    asm volatile("mrs %0, fpcr" : "=r"(state));
    return state;
  }
  static void write(std::uint64_t state) { asm volatile("msr fpcr, %0" : : "r"(state)); }
#else
  static constexpr std::uint64_t kControls = 0;
  static constexpr std::uint64_t kDefault = 0;
  static std::uint64_t read() { return 0; }
  static void write(std::uint64_t /*state*/) {}
#endif

  std::uint64_t before_;
};

}  // namespace rondo::detail

// Which stores write to memory that a rank on another core reads next: learned from what they take.
//
// Stores through the caches must first take each line away from the core that read it last. Between
// cores that share a cache that is quick, and the reader finds the elements in a cache. Between
// others it takes several times as long as non-temporal stores, which send the elements to memory,
// from where the reader fetches them. Which is faster depends on where the two threads run, which
// changes, and in a virtual machine cannot be seen. So some copies are measured, and now and then
// the stores that are not in use are tried.
//
// Example: copies of 64 KiB take 7 µs through the caches, and 4 µs past them; but the reader then
// takes longer, by about 5 µs. So the caches stay in use. Then the host of the virtual machine
// moves one core, and they take 28 µs. That is noticed at the next measured copy. Non-temporal
// stores are tried, take 2 µs, and stay in use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rondo::detail {

enum class Stores : std::uint8_t { cached, non_temporal };

// Reads no clock: its caller passes times.
class StoreChoice {
 public:
  // Shorter copies are not learned from, and go through the caches.
  static constexpr std::size_t kLeastBytes = 1024;

  struct Next {
    Stores stores = Stores::cached;
    bool is_measured = false;  // the caller passes what the copy took to note()
  };
  // Chooses the stores of the next copy.
  Next next(std::size_t bytes);
  // What the copy took that next() wanted measured, of as many bytes.
  void note(std::size_t bytes, double ns);

 private:
  // Of copies of about one size.
  struct OfSize {
    Stores chosen = Stores::cached;
    bool tries_others = false;
    bool half_measured = false;    // the first of two copies that are measured has been
    std::uint32_t copies = 0;      // since the last trial of the others ended, or since it began
    double least_ns_per_byte = 0;  // of the two copies
    // What the chosen ones took when the others were tried, or less: since then, least of all.
    double chosen_ns_per_byte = 0;
  };
  // By the number of bits in the number of bytes.
  static constexpr std::size_t kSizes = 65;

  OfSize& of(std::size_t bytes);

  std::array<OfSize, kSizes> by_size_;
};

}  // namespace rondo::detail

// Which stores write to memory that a rank on another core reads next: learned from what they take.
//
// Stores through the caches must first take each line away from the core that read it last. Between
// cores that share a cache that is quick, and the reader finds the elements in a cache. Between
// others it takes several times as long as non-temporal stores, which send the elements to memory,
// from where the reader fetches them. Which is faster depends on where the threads run, which
// changes, and in a virtual machine cannot be seen. So some writes are measured, and now and then,
// four times in a thousand, the stores that are not in use are tried.
//
// Example: writes of 64 KiB take 7 µs through the caches, and 4 µs past them; but the reader then
// takes longer, by about 5 µs. So the caches stay in use. Then the host of the virtual machine
// moves one core, and the writes take 28 µs. Within 150 writes of this size a rank finds that they
// have become slower, and tries non-temporal stores, which take 2 µs. They stay in use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rondo::detail {

enum class Stores : std::uint8_t { cached, non_temporal };

// Reads no clock: its caller passes times. Computes with integers alone, since any call comes here
// in the floating-point state of its caller.
class StoreChoice {
 public:
  // Nothing is learned from shorter writes, which go through the caches.
  static constexpr std::size_t kLeastBytes = 1024;

  struct Next {
    Stores stores = Stores::cached;
    bool is_measured = false;  // the caller passes to note() what the write took
  };
  // Returns how to write the next `bytes` bytes.
  Next next(std::size_t bytes);
  // The write that next() wanted measured, of as many bytes, took so long.
  void note(std::size_t bytes, std::uint64_t ns);

 private:
  // Of writes of about one size.
  struct OfSize {
    Stores chosen = Stores::cached;
    // What a byte takes by the chosen stores: the least since they were last found to be slower, or
    // were chosen. Nothing before the first trial of the others.
    std::optional<std::uint64_t> chosen_ps_per_byte;
    bool tries_others = false;
    std::uint32_t writes = 0;  // since the last trial of the others began or ended
    // Two writes are measured, one after the other. This is what the first one took, while the
    // second one is to come.
    std::optional<std::uint64_t> first_ps_per_byte;
  };
  // By the number of bits in the number of bytes.
  static constexpr std::size_t kSizes = 65;

  OfSize& of(std::size_t bytes);
  static void end_trial(OfSize& size, std::uint64_t others_ps_per_byte);
  static void judge_chosen(OfSize& size, std::uint64_t ps_per_byte);

  std::array<OfSize, kSizes> by_size_;
};

}  // namespace rondo::detail

// What a block of one rank shows to the same block of another rank in a `direct` call: which call
// the rank is in, where its buffers are, whether the other may still begin to touch them, and
// whether the rank may still touch the other's. Lies in the device memory of the rank that reads
// it, so that waiting for it costs no traffic between devices. Zeroed memory is the post of a rank
// that has shown no call.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/portable.hpp"
#include "fifo/atomics.hpp"
#include "fifo/fifo.hpp"
#include "fifo/signature.hpp"

namespace rondo::detail::gpu {

// A call, as a rank shows it to one other rank.
struct PostedCall {
  Signature signature;
  // Where the other rank's kernels find element 0 of the vector, or would.
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  std::uint64_t reachable = 0;  // 0: they cannot reach all that they need
};

// Calls are numbered here from 1.
class alignas(kCounterSpacing) Post {
 public:
  // The rank that shows its calls in this post calls show(), renounce_touching(), end_touching()
  // and withdraw(); the rank that reads them calls the others.

  // Shows the call.
  RONDO_HOST_DEVICE void show(std::uint64_t number, const PostedCall& call) {
    const auto content = std::bit_cast<Content>(call);
    RONDO_UNROLL
    for (std::size_t i = 0; i < kHalves; ++i) {
      store_relaxed(halves_[i], std::uint64_t{content.halves[i]} << 32U | (number & kLow));
    }
    store_release(complete_, number);
  }
  // The rank has touched nothing in this call, and will not.
  RONDO_HOST_DEVICE void renounce_touching(std::uint64_t number) {
    store_release(touched_, 2 * number);
  }
  // The rank will touch nothing more in this call. The store is a release: a rank that reads it
  // also reads what was written.
  RONDO_HOST_DEVICE void end_touching(std::uint64_t number) {
    store_release(touched_, 2 * number + 1);
  }

  // Whether the other rank has shown this call, or a later one.
  RONDO_HOST_DEVICE bool has_come(std::uint64_t number) {
    return load_acquire(complete_) >= number;
  }
  // Reads the call that has_come() has found. Returns false if the other rank has gone on to a
  // later call.
  RONDO_HOST_DEVICE bool read(std::uint64_t number, PostedCall& call) {
    Content content;
    bool same = true;
    RONDO_UNROLL
    for (std::size_t i = 0; i < kHalves; ++i) {
      const std::uint64_t half = load_relaxed(halves_[i]);
      content.halves[i] = static_cast<std::uint32_t>(half >> 32U);
      same = same && (half & kLow) == (number & kLow);
    }
    call = std::bit_cast<PostedCall>(content);
    return same;
  }
  // Called before this rank touches the other's buffers: returns false if the other has withdrawn
  // them.
  RONDO_HOST_DEVICE bool take(std::uint64_t number) {
    return raise_to(taken_, 2 * number) < 2 * number;
  }
  // Called when the call has failed: returns false if the other rank has taken the buffers already.
  // If it has not, it will not take them any more.
  RONDO_HOST_DEVICE bool withdraw(std::uint64_t number) {
    return raise_to(taken_, 2 * number + 1) < 2 * number;
  }
  RONDO_HOST_DEVICE bool has_touched(std::uint64_t number) {
    return load_acquire(touched_) >= 2 * number + 1;
  }
  // Whether it has touched the buffers, or will not.
  RONDO_HOST_DEVICE bool is_through(std::uint64_t number) {
    return load_acquire(touched_) >= 2 * number;
  }

 private:
  static constexpr std::size_t kHalves = sizeof(PostedCall) / sizeof(std::uint32_t);
  static constexpr std::uint64_t kLow = UINT32_MAX;
  struct Content {
    std::uint32_t halves[kHalves];
  };

  // Written by the rank that shows, read by the other. has_come() pairs with show(): whoever finds
  // the number finds the halves of that call, or of a later one. has_touched() and is_through()
  // pair with end_touching() and renounce_touching(). `taken_` is raised by both: take() and
  // withdraw() pair with each other, and of one call only the first succeeds.
  std::uint64_t complete_ = 0;          // number of the last call that was shown
  std::uint64_t halves_[kHalves] = {};  // 4 bytes of the call each, with the low half of its number
  std::uint64_t touched_ = 0;           // 2k: renounced touching in call k; 2k + 1: has touched
  std::uint64_t taken_ = 0;             // 2k: taken in call k; 2k + 1: withdrawn
};
static_assert(sizeof(Post) == kCounterSpacing);

}  // namespace rondo::detail::gpu

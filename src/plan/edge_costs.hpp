// What messages along edges between hosts take. The formulas of the cost model stand on this
// (plan/cost_model.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/cost_model.hpp"
#include "schedule/slicing.hpp"

namespace rondo::detail {

inline constexpr std::uint64_t kPsPerNs = 1000;

// `n` times `ns`; costs beyond 36 years are all alike, so that sums of them fit.
inline std::uint64_t times(std::uint64_t n, std::uint64_t ns) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 60U;
  return ns != 0 && n > kMost / ns ? kMost : n * ns;
}

// At least 1.
inline std::uint64_t divided_up(std::uint64_t value, std::uint64_t by) {
  return std::max<std::uint64_t>((value + by - 1) / by, 1);
}

// How often each element is passed on, by ranks that add to it or copy it; and how many of these
// hops between hosts follow one another.
struct Hops {
  std::uint64_t reducing = 0;
  std::uint64_t copying = 0;
  std::uint64_t one_after_the_other = 0;
};

// The costs of ranks that exchange along edges with such FIFOs. `window`: slices of a window.
// `beside`: how many other ranks of a host do the same at the same time.
class EdgeCosts {
 public:
  EdgeCosts(const CostPlace& place, const FifoGeometry& fifo, std::uint64_t window, int beside = 0)
      : link_(place.link),
        work_(place.work),
        share_cores_(place.share_cores),
        slot_bytes_(std::max<std::uint64_t>(fifo.slot_bytes, 1)),
        window_bytes_(std::max<std::uint64_t>(window, 1) * slot_bytes_),
        fifo_bytes_(std::max<std::uint64_t>(fifo.slots, 1) * slot_bytes_) {
    if (share_cores_) {
      work_.slice_ns = 0;  // the measured latency has the work of all ranks in it
      partners_ns_ = link_.latency_ns / kPartnersShare;
    }
    const std::uint64_t each_ns =
        share_cores_ ? link_.latency_ns / kBesideShare : work_.slice_ns / kBesideSlices;
    link_.latency_ns += static_cast<std::uint64_t>(beside) * each_ns;
  }

  EdgeCosts(const CostPlace& place, const FifoGeometry& fifo)
      : EdgeCosts(place, fifo, window_for(fifo.slots)) {}

  [[nodiscard]] std::uint64_t on_link(std::uint64_t bytes) const {
    return times(bytes, link_.ps_per_byte) / kPsPerNs;
  }
  [[nodiscard]] std::uint64_t windows(std::uint64_t bytes) const {
    return divided_up(bytes, window_bytes_);
  }
  // What a rank works to send bytes, to receive them and to pass them on; `reduces`: if it adds
  // them to its own.
  [[nodiscard]] std::uint64_t to_send(std::uint64_t bytes) const {
    return by_slices(bytes, work_.copy_ps_per_byte);
  }
  [[nodiscard]] std::uint64_t to_receive(std::uint64_t bytes, bool reduces) const {
    return by_slices(bytes, reduces ? work_.reduce_ps_per_byte : work_.copy_ps_per_byte);
  }
  [[nodiscard]] std::uint64_t to_pass_on(std::uint64_t bytes, bool reduces) const {
    return by_slices(bytes, reduces ? work_.reduce_ps_per_byte : 2 * work_.copy_ps_per_byte);
  }
  [[nodiscard]] std::uint64_t latency() const { return link_.latency_ns; }
  // In so many rounds of exchanges, until both partners have been run.
  [[nodiscard]] std::uint64_t partners_run(std::uint64_t rounds) const {
    return rounds * partners_ns_;
  }
  [[nodiscard]] bool share_cores() const { return share_cores_; }
  // Of a message to one rank, and one back. Where cores are shared, the measured latency is the
  // work of all ranks; here `others` of them wait meanwhile for that one rank, and use none.
  [[nodiscard]] std::uint64_t of_one_and_back(std::uint64_t bytes, std::uint64_t others) const {
    if (share_cores_) return 2 * latency() * others / (others + 1);
    return 2 * latency() + on_link(bytes) + to_send(bytes) + to_receive(bytes, false);
  }
  // Ranks pass on what they receive, slice by slice, window after window.
  [[nodiscard]] std::uint64_t passed_on(const Hops& hops, std::uint64_t bytes) const {
    const std::uint64_t rest = bytes % window_bytes_;
    const std::uint64_t whole = bytes / window_bytes_;
    std::uint64_t ns = times(whole, window_passed_on(hops, window_bytes_));
    if (rest > 0 || whole == 0) ns += window_passed_on(hops, rest);
    return ns;
  }
  // An exchange that ends before the next one begins. Two windows are under way at most: then the
  // rank waits until the first of the other's has come.
  [[nodiscard]] std::uint64_t exchanged(std::uint64_t bytes, bool reduces) const {
    const std::uint64_t slice = std::min(bytes, slot_bytes_);
    const std::uint64_t pauses = (windows(bytes) - 1) / 2;  // one after each two windows
    const std::uint64_t window_ns = on_link(std::min(bytes, window_bytes_));
    const std::uint64_t pause = latency() > window_ns ? latency() - window_ns : 0;
    return std::max(to_send(bytes) + to_receive(bytes, reduces),
                    latency() + partners_ns_ + to_send(slice) + on_link(bytes) +
                        to_receive(slice, reduces) + times(pauses, pause));
  }
  // After each half FIFO one message ends only when the receiver's answer has come
  // (net/run_ahead.hpp), and a call ends with its messages. Of calls with less, only some have such
  // a message: none that is alone, and of many that follow one another as large a share as they
  // have of half a FIFO. What is between is taken.
  [[nodiscard]] std::uint64_t answered(std::uint64_t bytes) const {
    return 2 * bytes > fifo_bytes_ ? latency() : latency() * bytes / fifo_bytes_;
  }
  // What a chain's first slice takes to the next rank, without the latency.
  [[nodiscard]] std::uint64_t slice_passed_on(std::uint64_t bytes, bool reduces) const {
    const std::uint64_t slice = std::min(bytes, slot_bytes_);
    return on_link(slice) + to_pass_on(slice, reduces);
  }
  // One way, all of it.
  [[nodiscard]] std::uint64_t sent(std::uint64_t bytes, bool reduces) const {
    const std::uint64_t slice = std::min(bytes, slot_bytes_);
    return latency() + to_send(slice) + to_receive(slice, reduces) +
           std::max({on_link(bytes), to_send(bytes) - to_send(slice),
                     to_receive(bytes, reduces) - to_receive(slice, reduces),
                     // Both ends hold slots, and one is free when the word of that has come back.
                     times(divided_up(bytes, 2 * fifo_bytes_) - 1, 2 * latency())});
  }

 private:
  // Either the links are busy all the time, or the ranks, or the first slice's way decides.
  [[nodiscard]] std::uint64_t window_passed_on(const Hops& hops, std::uint64_t window) const {
    const std::uint64_t slice = std::min(window, slot_bytes_);
    const std::uint64_t on_links = hops.reducing + hops.copying;
    const auto worked = [&](std::uint64_t part) {
      return times(hops.reducing, to_pass_on(part, true)) +
             times(hops.copying, to_pass_on(part, false));
    };
    const std::uint64_t first = to_send(slice) + times(hops.one_after_the_other, latency()) +
                                times(on_links, on_link(slice)) + worked(slice);
    const bool reduces = hops.reducing > 0;
    const std::uint64_t rest =
        std::max(on_link(window - slice), to_pass_on(window, reduces) - to_pass_on(slice, reduces));
    return std::max({times(on_links, on_link(window)) + latency(), to_send(window) + worked(window),
                     first + rest});
  }
  [[nodiscard]] std::uint64_t by_slices(std::uint64_t bytes, std::uint64_t ps_per_byte) const {
    return divided_up(bytes, slot_bytes_) * work_.slice_ns + bytes * ps_per_byte / kPsPerNs;
  }

  // Measured between 4 and 8 hosts on 2 cores: an exchange takes a quarter of the latency longer
  // than a message, since both partners have to be run before either can go on.
  static constexpr std::uint64_t kPartnersShare = 4;
  // What another rank's message at the same time costs, beside the link's time: half of the latency
  // where cores are shared, so that leaders carry few bytes (measured on 2 hosts of 2 ranks); else
  // little, an eighth of a slice's work (assumed).
  static constexpr std::uint64_t kBesideShare = 2;
  static constexpr std::uint64_t kBesideSlices = 8;

  LinkCosts link_;
  WorkCosts work_;
  bool share_cores_;
  std::uint64_t partners_ns_ = 0;
  std::uint64_t slot_bytes_;
  std::uint64_t window_bytes_;
  std::uint64_t fifo_bytes_;
};

}  // namespace rondo::detail

// How long a call between hosts takes, by a formula for each algorithm: what `auto` chooses by.
//
// A message without bytes takes the link's latency, and each rank works a little for each slice; a
// byte takes its time on the link, which all ranks of a host share, and in the processor where it
// is added or copied. The formulas count the messages that follow one another and the bytes that
// go along the busiest link; rondo-sim (bench/sim) carries out the same schedules event by event,
// with the same costs, and tests/sim compares the two. All is in whole numbers, so that all ranks
// choose alike, however their processors round.
//
// Example: 64 KiB on 8 hosts, 30 us and 1 ns a byte. By ring there are 14 hops of 8 KiB, 14 (30 +
// 8) = 532 us; by recursive doubling 3 of 64 KiB, 3 (30 + 66) = 288 us; by halving and doubling 6
// hops and 2 (32 + 16 + 8) KiB, 180 + 115 = 295 us. Halving once and then doubling has 4 hops and 2
// · 32 + 2 · 32 KiB, and takes 251 us. (Without what ranks work.)
#pragma once

#include <cstdint>
#include <optional>

#include <rondo/types.hpp>

#include "base/link_facts.hpp"
#include "fifo/fifo.hpp"

namespace rondo::detail {

// What a rank's own work takes. These are assumed, and rondo-sim assumes them for a network that it
// has not measured.
inline constexpr std::uint64_t kSliceNs = 2000;  // to send or to receive a slice
inline constexpr std::uint64_t kReducePsPerByte = 125;
inline constexpr std::uint64_t kCopyPsPerByte = 125;

struct WorkCosts {
  std::uint64_t slice_ns = kSliceNs;
  std::uint64_t reduce_ps_per_byte = kReducePsPerByte;
  std::uint64_t copy_ps_per_byte = kCopyPsPerByte;
};

struct LinkCosts {
  std::uint64_t latency_ns = 0;
  std::uint64_t ps_per_byte = 0;
};
// Of a link that was measured; else of a usual one. Rounded to powers of two, so that runs seldom
// choose differently although the link is measured anew: sums by another algorithm may have other
// last bits.
LinkCosts link_costs(const std::optional<LinkFacts>& link);

// What calls of a communicator cost. The formulas take all hosts to have equally many ranks.
struct CostPlace {
  int ranks = 1;
  int hosts = 1;
  int rails = 1;  // owners of each host in hierarchical
  LinkCosts link;
  WorkCosts work;
  // FIFOs between hosts. A rank sends no more bytes ahead than they hold at both ends.
  FifoGeometry ring;
  FifoGeometry off_ring;
  FifoGeometry trees;
  // There are more ranks than cores on some machine. Then the latency that was measured, on all
  // links at once, is how long it takes to run all ranks in turn.
  bool share_cores = false;

  [[nodiscard]] int ranks_per_host() const { return ranks / hosts; }
};

// How the hosts of a hierarchical call exchange their sums.
struct BetweenHosts {
  Algorithm algorithm = Algorithm::ring;
  bool along_rails = true;  // by several owners of each host, each of which has a part; else by the
                            // leaders

  friend bool operator==(const BetweenHosts&, const BetweenHosts&) = default;
};

// How often halving_doubling of `bytes` among so many ranks halves them, before it exchanges the
// rest whole. `sharing`: how many ranks do so at the same time over one link.
int halvings_that_pay(std::uint64_t bytes, int ranks, const LinkCosts& link,
                      const WorkCosts& work = {}, int sharing = 1);

// Returns the size of a piece of a hierarchical all_reduce along rails, in whole pages; it may be
// more than the vector has. The host works on one piece while another travels. By ring, a piece has
// a part for each host, and in each step of the ring the owners of a host send one part together;
// by halving_doubling, each piece costs the hops once more. `link`: the slowest one between hosts.
std::uint64_t rail_piece_bytes(Algorithm algorithm, std::uint64_t bytes, int hosts, int owners,
                               const LinkCosts& link);

// The time in ns of a call that reaches all ranks. `algorithm`: ring, naive, recursive_doubling,
// halving_doubling, or tree, as far as it carries the collective.
std::uint64_t cost_ns(Collective collective, Algorithm algorithm, std::uint64_t bytes,
                      const CostPlace& place);
// The same of an all_reduce by `hierarchical`.
std::uint64_t cost_ns(const BetweenHosts& between, std::uint64_t bytes, const CostPlace& place);

}  // namespace rondo::detail

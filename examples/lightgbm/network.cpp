// Carries LightGBM's distributed training by Rondo: a library that train.py loads beside LightGBM's
// own, and whose functions it gives to LGBM_NetworkInitWithFunctions().
//
// LightGBM 4 sums histograms by reduce-scatter, with a function of its own for each kind of
// element, and collects the best splits by all-gather. Its headers meta.h and c_api.h, which say
// what these functions are given, are not part of its Python package.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory_resource>
#include <optional>
#include <rondo/rondo.hpp>
#include <span>
#include <vector>

namespace {

std::optional<rondo::Communicator> ranks;

// No exception may pass through LightGBM, whose functions return nothing.
template <class Calls>
void or_exit(const Calls& calls) {
  try {
    calls();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(EXIT_FAILURE);
  }
}

// Adds elements of so many bytes in all to those of `sum`.
using Reducer = void (*)(const std::uint8_t* in, std::uint8_t* sum, int element_bytes,
                         std::int32_t bytes);

}  // namespace

extern "C" {

int rondo_lightgbm_join() {
  or_exit([] { ranks = rondo::from_environment(); });
  return ranks->size();
}
int rondo_lightgbm_rank() { return ranks->rank(); }
void rondo_lightgbm_leave() { ranks.reset(); }

// Each block goes to its rank, which adds those of the others in the order of their ranks.
void rondo_lightgbm_reduce_scatter(std::uint8_t* in, std::int32_t /*in_bytes*/, int element_bytes,
                                   const std::int32_t* begins, const std::int32_t* lengths,
                                   int blocks, std::uint8_t* out, std::int32_t /*out_bytes*/,
                                   const Reducer& reducer) {
  or_exit([&] {
    static std::pmr::vector<std::uint8_t> received(&rondo::reachable_memory());
    const int rank = ranks->rank();
    const std::size_t length = static_cast<std::uint32_t>(lengths[rank]);
    received.resize(length * static_cast<std::size_t>(blocks));
    const auto block_of = [&](int peer) {
      return std::span(received).subspan(length * static_cast<std::size_t>(peer), length);
    };
    for (int step = 1; step < blocks; ++step) {
      const int next = (rank + step) % blocks;
      const int previous = (rank - step + blocks) % blocks;
      const std::span sent(in + begins[next], static_cast<std::size_t>(lengths[next]));
      ranks->sendrecv(sent, next, block_of(previous), previous);
    }
    std::ranges::copy(std::span(in + begins[rank], length), block_of(rank).begin());
    std::ranges::copy(block_of(0), out);
    for (int peer = 1; peer < blocks; ++peer) {
      reducer(block_of(peer).data(), out, element_bytes, lengths[rank]);
    }
  });
}

void rondo_lightgbm_all_gather(std::uint8_t* in, std::int32_t /*in_bytes*/,
                               const std::int32_t* begins, const std::int32_t* lengths, int blocks,
                               std::uint8_t* out, std::int32_t /*out_bytes*/) {
  or_exit([&] {
    const std::vector<std::size_t> counts(lengths, lengths + blocks);
    const int rank = ranks->rank();
    const std::span own(in, counts[static_cast<std::size_t>(rank)]);
    const auto whole = static_cast<std::size_t>(begins[blocks - 1]) + counts.back();
    ranks->all_gather_v(own, std::span(out, whole), counts);
  });
}
}

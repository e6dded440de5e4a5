#include "plan/algorithms.hpp"

#include <fmt/format.h>

#include "base/collective_traits.hpp"
#include "base/names.hpp"

namespace rondo::detail {
namespace {

// Kinds of calls.
enum class Kind : std::uint8_t {
  none,
  collectives,
  all_reduces,
  sums_for_all,
  reductions,
  of_parts,
  pairwise
};

bool is_of(Kind kind, Collective collective) {
  switch (kind) {
    case Kind::none:
      return false;
    case Kind::collectives:
      return !goes_pairwise(collective);
    case Kind::all_reduces:
      return collective == Collective::all_reduce;
    case Kind::sums_for_all:
      return collective == Collective::all_reduce || collective == Collective::barrier;
    case Kind::reductions:
      return reduces(collective);
    case Kind::of_parts:
      return collective == Collective::broadcast || collective == Collective::reduce ||
             collective == Collective::all_gather || collective == Collective::reduce_scatter;
    case Kind::pairwise:
      return goes_pairwise(collective);
  }
  return false;
}

const char* name(Kind kind) {
  switch (kind) {
    case Kind::none:
      return "nothing";
    case Kind::collectives:
      return "collectives other than gather, scatter and all_to_all";
    case Kind::all_reduces:
      return "all_reduces";
    case Kind::sums_for_all:
      return "all_reduces and barriers";
    case Kind::reductions:
      return "reductions";
    case Kind::of_parts:
      return "broadcast, reduce, all_gather and reduce_scatter";
    case Kind::pairwise:
      return "messages, gather, scatter and all_to_all";
  }
  return "";
}

// The order in which an algorithm adds up the ranks' elements.
enum class Order : std::uint8_t { other, of_ranks, of_ranks_on_one_host };

struct Row {
  Kind on_hosts = Kind::collectives;
  Kind on_devices = Kind::none;
  bool takes_counts = true;
  Order order = Order::other;
  const char* lacking = "";  // why it is not offered, on hosts
  bool has_slots = true;     // or parts of stages, in which whole elements travel
};

constexpr Row row_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::one_shot:
      return {Kind::collectives,
              Kind::sums_for_all,
              true,
              Order::of_ranks,
              "not all ranks share memory, so one_shot cannot be used; choose ring",
              false};
    case Algorithm::direct:
      return {Kind::collectives,
              Kind::collectives,
              false,
              Order::of_ranks,
              "not all ranks share memory, so direct cannot be used; choose ring",
              false};
    case Algorithm::recursive_doubling:
      return {Kind::sums_for_all, Kind::none, true, Order::other,
              "recursive_doubling goes between hosts only; choose one_shot or ring"};
    case Algorithm::halving_doubling:
      return {Kind::all_reduces, Kind::none, true, Order::other,
              "halving_doubling goes between hosts only; choose one_shot or ring"};
    case Algorithm::hierarchical:
      return {Kind::sums_for_all, Kind::none, true, Order::of_ranks_on_one_host,
              "hierarchical is for processes of which several share the memory of a host; choose "
              "ring"};
    case Algorithm::tree:
      return {Kind::of_parts};
    case Algorithm::chain:
      return {Kind::reductions,
              Kind::none,
              true,
              Order::of_ranks,
              "chain needs ranks in the ring in rank order; set CommunicatorOptions::rank_order, "
              "or choose ring",
              false};
    case Algorithm::pairwise:
      return {Kind::pairwise, Kind::pairwise};
    case Algorithm::ring:
    case Algorithm::naive:
    case Algorithm::automatic:
      break;
  }
  return {Kind::collectives, Kind::collectives};
}

Kind kind_of(Algorithm algorithm, const Offers& offers) {
  const Row row = row_of(algorithm);
  return offers.on_devices ? row.on_devices : row.on_hosts;
}

}  // namespace

Offers basic_offers(int ranks) {
  Offers offers;
  offers.ranks = ranks;
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::naive, Algorithm::tree, Algorithm::pairwise}) {
    offers.of(algorithm).most_bytes = kAnySize;
  }
  return offers;
}

Objection objection_to(Algorithm algorithm, const Call& call, const Offers& offers,
                       bool reaches_buffers) {
  const Kind kind = kind_of(algorithm, offers);
  if (kind == Kind::none) return Objection::hosts_only;
  if (goes_pairwise(call.collective) && kind != Kind::pairwise) return Objection::pairwise_only;
  if (kind == Kind::pairwise && !goes_pairwise(call.collective)) return Objection::other_kind;
  const Row row = row_of(algorithm);
  if (call.counts != nullptr && !row.takes_counts) return Objection::counts;
  if (offers.ranks == 1 && !offers.on_devices)
    return Objection::none;  // all do the same: they copy
  const Offer& offer = offers.of(algorithm);
  // Where the ring is not in rank order, chain gathers the elements of a reduction of the program.
  const bool gathers = algorithm == Algorithm::chain && call.reduction != nullptr;
  if (offer.most_bytes == 0 && !gathers) return Objection::not_offered;
  if (call.reduction != nullptr && row.has_slots &&
      element_bytes(call) > offers.largest_element_bytes) {
    return Objection::large_elements;
  }
  if (gathers) return is_of(kind, call.collective) ? Objection::none : Objection::other_kind;
  if (!is_of(kind, call.collective)) return Objection::other_kind;
  if (algorithm == Algorithm::direct && !reaches_buffers) return Objection::buffers;
  if (call.count > offer.most_bytes / element_bytes(call)) return Objection::too_large;
  return Objection::none;
}

std::string text_of(Objection objection, Algorithm algorithm, const Offers& offers) {
  const Offer& offer = offers.of(algorithm);
  switch (objection) {
    case Objection::none:
      break;
    case Objection::hosts_only:
      return fmt::format("{} carries calls on host memory only", name(algorithm));
    case Objection::pairwise_only:
      return "only pairwise carries this call; name pairwise or no algorithm";
    case Objection::other_kind:
      return fmt::format("{} carries {} only; choose ring", name(algorithm),
                         name(kind_of(algorithm, offers)));
    case Objection::counts:
      return fmt::format("{} cannot carry chunks of different sizes; choose ring", name(algorithm));
    case Objection::large_elements:
      return fmt::format("{} carries elements of up to {} bytes; choose chain, or larger slots",
                         name(algorithm), offers.largest_element_bytes);
    case Objection::not_offered:
      return offer.lacking != nullptr ? offer.lacking : row_of(algorithm).lacking;
    case Objection::buffers:
      return offers.on_devices
                 ? "direct needs buffers that all ranks reach: made by "
                   "cuda::Communicator::allocate, unless all ranks are on one device in one process"
                 : "direct needs buffers that all ranks can reach: memory of "
                   "rondo::reachable_memory(); choose ring";
    case Objection::too_large:
      return fmt::format("{} carries vectors of up to {} bytes among {} ranks; choose ring",
                         name(algorithm), offer.most_bytes, offers.ranks);
  }
  return {};
}

bool keeps_rank_order(Algorithm algorithm, const Offers& offers) {
  const Order order = row_of(algorithm).order;
  return order == Order::of_ranks ||
         (order == Order::of_ranks_on_one_host && !offers.leaves_memory);
}

}  // namespace rondo::detail

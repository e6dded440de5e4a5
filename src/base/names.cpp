#include "base/names.hpp"

#include <array>
#include <string>

#include <rondo/topology.hpp>
#include <rondo/types.hpp>

namespace rondo {
namespace {

// `names` are in the order of the enumeration.
template <std::size_t N, class Enum>
std::string_view pick(const std::array<std::string_view, N>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : std::string_view("invalid");
}

}  // namespace

std::string_view name(DataType type) {
  static constexpr std::array<std::string_view, kDataTypeCount> kNames = {
      "f32", "f64", "f16", "bf16", "i8",  "u8",   "i32", "u32",
      "i64", "u64", "i16", "u16",  "c64", "c128", "bool"};
  return pick(kNames, type);
}

std::string_view name(ReduceOp op) {
  static constexpr std::array<std::string_view, kReduceOpCount> kNames = {
      "sum",    "prod",    "min",         "max",        "avg",        "bit_and",
      "bit_or", "bit_xor", "logical_and", "logical_or", "logical_xor"};
  return pick(kNames, op);
}

std::string_view name(Collective collective) {
  static constexpr std::array<std::string_view, kCollectiveCount> kNames = {
      "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "barrier",
      "gather",     "scatter",        "all_to_all", "send",      "recv",   "sendrecv"};
  return pick(kNames, collective);
}

std::string_view name(Algorithm algorithm) {
  static constexpr std::array<std::string_view, kAlgorithmCount> kNames = {"auto",
                                                                           "ring",
                                                                           "naive",
                                                                           "one_shot",
                                                                           "recursive_doubling",
                                                                           "direct",
                                                                           "chain",
                                                                           "halving_doubling",
                                                                           "hierarchical",
                                                                           "tree",
                                                                           "pairwise"};
  return pick(kNames, algorithm);
}

std::optional<Algorithm> algorithm_named(std::string_view name) {
  for (int i = 0; i < kAlgorithmCount; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    if (rondo::name(algorithm) == name) return algorithm;
  }
  return std::nullopt;
}

std::string_view name(Carrier carrier) {
  static constexpr std::array<std::string_view, kCarrierCount> kNames = {"shm", "mpi",    "p2p",
                                                                         "ipc", "pinned", "ucx"};
  return pick(kNames, carrier);
}

std::string_view detail::name_of(PartOf function) {
  static constexpr std::array<std::string_view, kPartOfCount> kNames = {
      "",
      "split",
      "duplicate",
      "allocate",
      "all_reduce_coalesced",
      "making a GradientReducer",
      "a GradientReducer's iteration",
      "GradientReducer::write_trace",
      "cuda::join",
      "cuda::Communicator::allocate"};
  const auto index = static_cast<std::size_t>(function);
  return index < kNames.size() ? kNames[index] : "";
}

std::string_view detail::name_of_function(const Call& call) {
  return call.part_of == PartOf::nothing ? name(call.collective) : name_of(call.part_of);
}

std::string detail::names_of_algorithms() {
  std::string names;
  for (int i = 0; i < kAlgorithmCount; ++i) {
    if (i > 0) names += ", ";
    names += name(static_cast<Algorithm>(i));
  }
  return names;
}

}  // namespace rondo

/// \file
/// Element types, reductions and algorithms: the vocabulary of every call.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

#include <rondo/export.hpp>
#include <rondo/float16.hpp>

namespace rondo {

/// Element types that travel through a collective. c64 and c128 are complex numbers of two f32 and
/// of two f64; `boolean` is a byte of 0 or 1. The types from i16 on, and the reductions from
/// bit_and on, are for host memory alone, and are loops without vector code of their own.
enum class DataType : std::uint8_t {
  f32,
  f64,
  f16,
  bf16,
  i8,
  u8,
  i32,
  u32,
  i64,
  u64,
  i16,
  u16,
  c64,
  c128,
  boolean
};
inline constexpr int kDataTypeCount = 15;

/// How elements of different ranks become one.
/// - Integers wrap modulo 2^bits.
/// - `min` and `max` of floating-point elements return NaN when either operand is NaN, with the
///   bits of the NaN operand (of one of them, if both are NaN); in f16 and bf16 it is made quiet
///   (on devices: any quiet NaN). `sum`, `prod` and `avg` return a quiet NaN. All ranks get the
///   same bits. Of -0 and +0, `min` and `max` return either.
/// - `avg` is the sum divided by the number of ranks, applied once; floating-point types only. Sums
///   of 16-bit types on the way are kept in f32, or divided by a power of two, so that an average
///   that the type holds does not overflow (one of f32 or f64 may); an f16 average may then be off
///   by the number of ranks times 2^-24, which counts where elements are below some 2^-14.
/// - f16 and bf16 are widened to f32 for each operation and rounded to nearest-even. `one_shot` and
///   `direct`, and `chain` (which is for host memory), round once, at the end; `hierarchical`
///   rounds once inside each host and then at each step between hosts; the other algorithms round
///   at each step.
/// - Complex numbers have no `min` and `max`.
/// - `bit_and`, `bit_or` and `bit_xor` are for integers. So are `logical_and`, `logical_or` and
///   `logical_xor`, which take an element that is not 0 as true, and give 1 or 0.
/// - Of booleans, `sum`, `max` and all forms of `or` are the same, and so are `prod`, `min` and all
///   forms of `and`.
/// A reduction of the program's own: user_reductions.hpp.
enum class ReduceOp : std::uint8_t {
  sum,
  prod,
  min,
  max,
  avg,
  bit_and,
  bit_or,
  bit_xor,
  logical_and,
  logical_or,
  logical_xor
};
inline constexpr int kReduceOpCount = 11;

/// The operations that a communicator offers.
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  barrier,
  gather,
  scatter,
  all_to_all,
  send,
  recv,
  sendrecv
};
inline constexpr int kCollectiveCount = 12;

/// How a collective is carried out. `automatic` lets Rondo choose.
/// - `ring`: reduce-scatter and all-gather over chunks, sliced and pipelined (docs/ring.md).
/// - `naive`: everything to rank 0, then back; the baseline that figures are compared with.
/// - `one_shot`: every rank writes all its data where every other rank reads it, in one hop. For
///   small vectors of ranks that share memory; on devices for all_reduces and barriers (cuda.hpp).
/// - `recursive_doubling`: pairs of ranks exchange whole vectors, in ⌊log2(number of ranks)⌋
///   rounds. For small all_reduces and barriers of host memory between hosts.
/// - `halving_doubling`: pairs of ranks exchange halves of what they have, then double it
///   (Rabenseifner). For all_reduces of host memory between hosts.
/// - `hierarchical`: reduced inside each host through its memory, then carried between hosts, then
///   spread inside each host. Between hosts it goes by ring or halving_doubling, each rank its
///   chunk; few bytes go between one rank of each host. For all_reduces and barriers of host memory
///   where hosts hold several ranks.
/// - `tree`: broadcast and reduce along a binomial tree; all_gather and reduce_scatter along one
///   tree for each rank, all at once (Bruck, PAT), in ⌈log2(number of ranks)⌉ rounds. For few bytes
///   of host memory between hosts. A reduce_scatter, and a reduce, take memory for the vector.
/// - `direct`: each rank handles its chunk of the buffers of all ranks, which it reads and writes
///   where they are: each byte moves once. For ranks of one process, with any buffers; and for
///   processes of one host whose buffers are in memory of reachable_memory(). On devices:
///   docs/gpu.md.
/// - `chain`: the sum goes through all ranks in rank order, then the result does: for reductions of
///   host memory whose bits may depend on nothing except the ranks' values
///   (CommunicatorOptions::rank_order), and for a UserReduction that does not commute or whose
///   elements are larger than a slot.
/// - `pairwise`: elements go straight from the rank that has them to the rank that gets them,
///   through a FIFO that only these two use: gather, scatter, all_to_all, send, recv and sendrecv,
///   and nothing else.
enum class Algorithm : std::uint8_t {
  automatic,
  ring,
  naive,
  one_shot,
  recursive_doubling,
  direct,
  chain,
  halving_doubling,
  hierarchical,
  tree,
  pairwise
};
inline constexpr int kAlgorithmCount = 11;

/// Bytes of one element.
constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::i8:
    case DataType::u8:
    case DataType::boolean:
      return 1;
    case DataType::f16:
    case DataType::bf16:
    case DataType::i16:
    case DataType::u16:
      return 2;
    case DataType::f32:
    case DataType::i32:
    case DataType::u32:
      return 4;
    case DataType::f64:
    case DataType::i64:
    case DataType::u64:
    case DataType::c64:
      return 8;
    case DataType::c128:
      return 16;
  }
  return 0;
}

constexpr bool is_complex(DataType type) { return type == DataType::c64 || type == DataType::c128; }

/// Whether elements are made of floating-point numbers.
constexpr bool is_floating(DataType type) {
  return type == DataType::f32 || type == DataType::f64 || type == DataType::f16 ||
         type == DataType::bf16 || is_complex(type);
}

/// Whether a call may combine this type and reduction.
constexpr bool supports(DataType type, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::prod:
      return true;
    case ReduceOp::min:
    case ReduceOp::max:
      return !is_complex(type);
    case ReduceOp::avg:
      return is_floating(type);
    default:
      return !is_floating(type);
  }
}

/// The name of a value in errors, logs and RONDO_ALGO; "invalid" for one outside its enumeration.
/// It is in static storage; any thread may call these functions.
RONDO_API std::string_view name(DataType type);
RONDO_API std::string_view name(ReduceOp op);
RONDO_API std::string_view name(Collective collective);
RONDO_API std::string_view name(Algorithm algorithm);
/// The algorithm with this name; empty if there is none.
RONDO_API std::optional<Algorithm> algorithm_named(std::string_view name);

namespace detail {
template <class T>
constexpr int data_type_of() {
  if constexpr (std::same_as<T, float>) return static_cast<int>(DataType::f32);
  if constexpr (std::same_as<T, double>) return static_cast<int>(DataType::f64);
  if constexpr (std::same_as<T, Float16>) return static_cast<int>(DataType::f16);
  if constexpr (std::same_as<T, BFloat16>) return static_cast<int>(DataType::bf16);
  if constexpr (std::same_as<T, std::complex<float>>) return static_cast<int>(DataType::c64);
  if constexpr (std::same_as<T, std::complex<double>>) return static_cast<int>(DataType::c128);
  if constexpr (std::same_as<T, bool>) {
    return static_cast<int>(DataType::boolean);
  } else if constexpr (std::integral<T> && std::same_as<T, std::remove_cv_t<T>>) {
    constexpr bool is_signed = std::numeric_limits<T>::is_signed;
    if constexpr (sizeof(T) == 1) return static_cast<int>(is_signed ? DataType::i8 : DataType::u8);
    if constexpr (sizeof(T) == 2)
      return static_cast<int>(is_signed ? DataType::i16 : DataType::u16);
    if constexpr (sizeof(T) == 4)
      return static_cast<int>(is_signed ? DataType::i32 : DataType::u32);
    if constexpr (sizeof(T) == 8)
      return static_cast<int>(is_signed ? DataType::i64 : DataType::u64);
  }
  return -1;
}
}  // namespace detail

/// A C++ type with a DataType: float, double, Float16, BFloat16, integers of 1, 2, 4 and 8 bytes,
/// std::complex of float and double, and bool, without const or volatile.
template <class T>
concept Element = detail::data_type_of<T>() >= 0;

template <Element T>
inline constexpr DataType kDataTypeOf = static_cast<DataType>(detail::data_type_of<T>());

}  // namespace rondo

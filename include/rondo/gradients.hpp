/// \file
/// What a gradient reducer is given, and what it reports: parameters, options, statistics.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rondo/call.hpp>
#include <rondo/communicator.hpp>
#include <rondo/types.hpp>

namespace rondo {

/// `64_KiB`: bytes.
inline namespace literals {
constexpr std::size_t operator""_KiB(unsigned long long kibibytes) {
  return static_cast<std::size_t>(kibibytes) << 10U;
}
}  // namespace literals

/// One parameter of a model, as a gradient reducer sees it: a name for messages, where its gradient
/// is, and where the parameter itself is, its values. Averaged gradients keep ranks equal only if
/// all ranks begin with the same values. So values that the reducer may write take rank 0's when
/// the reducer is made, and values that it may not write (a range of const elements) are compared
/// bit by bit: if they differ, all ranks throw UsageError. The memory is borrowed.
struct Parameter {
  Parameter() = default;

  /// A gradient and values in the caller's memory.
  template <OutputRange Gradient, ElementRange Value>
    requires SameElements<Gradient, Value>
  Parameter(std::string its_name, Gradient&& its_gradient, Value&& its_value)
      : Parameter(gradient_only(std::move(its_name), its_gradient)) {
    set_value(its_value);
  }

  /// Values in the caller's memory, and a gradient in memory of the reducer's own, where its bucket
  /// is, so that nothing is copied: see GradientReducer::gradient.
  template <ElementRange Value>
  static Parameter owned(std::string its_name, Value&& its_value) {
    using T = detail::ElementOf<Value>;
    Parameter parameter = owned_gradient_only<T>(std::move(its_name), std::ranges::size(its_value));
    parameter.set_value(its_value);
    return parameter;
  }

  /// A gradient in the caller's memory, for a program that gives all ranks the same values by
  /// itself: the reducer does not know them, and ranks that begin with different ones stay
  /// different.
  template <OutputRange Gradient>
  static Parameter gradient_only(std::string its_name, Gradient&& its_gradient) {
    using T = detail::ElementOf<Gradient>;
    Parameter parameter =
        owned_gradient_only<T>(std::move(its_name), std::ranges::size(its_gradient));
    parameter.gradient = std::ranges::data(its_gradient);
    return parameter;
  }

  /// The same, with a gradient of `its_count` elements in memory of the reducer's own.
  template <Element T>
  static Parameter owned_gradient_only(std::string its_name, std::size_t its_count) {
    Parameter parameter;
    parameter.name = std::move(its_name);
    parameter.count = its_count;
    parameter.type = kDataTypeOf<T>;
    return parameter;
  }

  /// Not without a word that ranks which begin with different values stay different: give the
  /// values, too, or write gradient_only, or owned_gradient_only.
  template <OutputRange Gradient>
  Parameter(std::string its_name, Gradient&& its_gradient) = delete;
  template <Element T>
  static Parameter owned(std::string its_name, std::size_t its_count) = delete;

  std::string name;
  void* gradient = nullptr;  ///< null: the reducer's own memory
  std::size_t count = 0;     ///< elements
  DataType type = DataType::f32;
  void* value = nullptr;           ///< takes rank 0's; null: the reducer may not write them
  const void* compared = nullptr;  ///< the values, where they are compared
  std::size_t value_count = 0;

 private:
  template <class Value>
  void set_value(Value& its_value) {
    if constexpr (OutputRange<Value&>) {
      value = std::ranges::data(its_value);
    } else {
      compared = std::ranges::data(its_value);
    }
    value_count = std::ranges::size(its_value);
  }
};

/// How the ranks' gradients become one.
/// - `sum`: the sum.
/// - `ranks`: the sum divided by the number of ranks (that have not joined).
/// - `samples`: the average over all samples of all ranks, each of which says how many it had
///   (GradientReducer::set_samples): right for uneven shares and workers of different speeds.
enum class Average : std::uint8_t { sum, ranks, samples };

/// What a rank's own gradient is; only Average::samples needs to know.
enum class LocalGradient : std::uint8_t { mean_of_samples, sum_of_samples };

/// The type that f32 gradients have between ranks. `exact`: f32. `bf16`, `f16`: half the bytes;
/// every sum of two is computed in f32 and rounded to the narrow type as ReduceOp says: once in all
/// by `direct` and `one_shot`, by `ring` once for each rank that a partial sum passes. An average
/// divides before the sum, so that the sum does not leave f16's range where the average would not.
enum class WireType : std::uint8_t { exact, bf16, f16 };

/// What a hook is given: one bucket, packed and scaled, so that the sum over the ranks is the
/// result.
struct GradientBucket {
  std::size_t index = 0;  ///< in the order in which buckets go
  void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::f32;

  template <Element T>
  [[nodiscard]] std::span<T> as() const {
    return {static_cast<T*>(data), count};
  }
};

/// A user's own way to sum a bucket over the ranks, in place. Called in the same order on all
/// ranks, on the reducer's thread (with `overlap`; else in finish()). It must make its calls on the
/// communicator that it is given, which is the reducer's: calls on the program's own throw
/// UsageError then. It must leave the same bits on every rank. An exception ends the communicator.
using BucketHook = std::function<void(Communicator&, const GradientBucket&)>;

/// For GradientOptions::progress_core.
inline constexpr int kAnyCore = -1;

/// The same on every rank, except `progress_core`, `timeout`, `trace` and `hook`.
struct GradientOptions {
  /// No bucket is larger, unless a single parameter is. 0: a power of two, computed from the
  /// communicator's latency times its bandwidth, which are measured when the reducer is made, and
  /// from the model's size.
  std::size_t bucket_bytes = 0;
  /// The same limit for the first bucket: if it is smaller, that bucket starts earlier. 0: a
  /// quarter of bucket_bytes.
  std::size_t first_bucket_bytes = 0;
  Average average = Average::ranks;
  LocalGradient local = LocalGradient::mean_of_samples;
  WireType wire = WireType::exact;
  /// Called in place of an all_reduce; only with WireType::exact.
  BucketHook hook = {};
  /// If set, gradients that were not marked count as zeros in finish(). Otherwise they are an
  /// error, which names the first and counts the others.
  bool allow_unused = false;
  /// If set, buckets follow the order of rank 0's marks in its first backward pass, from the second
  /// iteration on; else the reverse order of the parameters.
  bool order_by_arrival = true;
  /// If set, results have the same bits whatever the bucket sizes. Costs a copy each way, up to 32
  /// elements for each rank and parameter on the wire, and the use of the faster algorithms for
  /// small buckets. Does not apply to the sums of a hook.
  bool layout_independent = false;
  /// If set, buckets are averaged as soon as they are full. Otherwise in finish(), on the thread
  /// that calls it: for comparisons, where MPI allows only one thread, and where all ranks are on
  /// one host and leave no core to the reducers' threads: communication is copying there, and takes
  /// the time of the threads that compute. The bits are the same.
  bool overlap = true;
  /// The hardware thread (as numbered by the operating system) that the reducer's thread is bound
  /// to; kAnyCore: not bound. Unset: the last core of this rank's share of the machine, if the
  /// share has more than one core.
  std::optional<int> progress_core = std::nullopt;
  /// For the buckets' all_reduces; unset: the communicator's.
  std::optional<Algorithm> algorithm = std::nullopt;
  /// For each call; unset: the communicator's.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  /// Records a timeline: see GradientReducer::write_trace.
  bool trace = false;
};

/// One bucket, of one iteration. Times in microseconds since the iteration's first mark.
struct BucketStatistics {
  std::size_t bytes = 0;  ///< on the wire, for one rank
  double ready_us = 0;    ///< all its gradients were there
  double start_us = 0;    ///< its turn had come
  double end_us = 0;      ///< the result was in place
};

/// One iteration on this rank.
struct GradientStatistics {
  std::uint64_t iteration = 0;         ///< number among those that communicated, from 1
  std::size_t bytes = 0;               ///< of all buckets
  std::vector<std::uint32_t> arrival;  ///< parameters in the order of their marks
  std::vector<BucketStatistics> buckets;
  double compute_us = 0;   ///< from the first mark to finish()
  double transfer_us = 0;  ///< time in which a bucket was in transfer
  double exposed_us = 0;   ///< time for which finish() blocked
  /// 1 − exposed / transfer; below 0 if finish() blocked for longer than buckets were in transfer.
  double hidden_fraction = 0;
  bool reordered = false;  ///< buckets were formed anew at the end of it
};

}  // namespace rondo

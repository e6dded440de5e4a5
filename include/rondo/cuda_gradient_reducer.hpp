/// \file
/// Averages gradients in device memory over the ranks while backprop still computes the next ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <rondo/cuda.hpp>
#include <rondo/export.hpp>
#include <rondo/gradients.hpp>

namespace rondo::detail::gpu {
class DeviceReducer;
}

namespace rondo::cuda {

/// rondo::GradientReducer for device memory. The host only enqueues, and waits only where it is far ahead of the
/// device (see Communicator): a mark records an event on the stream that produces the gradient, buckets travel on
/// a stream of the reducer's own as soon as the events of their gradients have happened, and finish() makes a
/// stream wait for the last of them.
///
///     rondo::cuda::GradientReducer reducer(devices, parameters);
///     for (...) {
///       forward(stream);
///       backward(stream, [&](std::size_t i) { reducer.mark_ready(i, stream); });
///       reducer.finish(stream);
///       update(stream);  // finds averages
///     }
///
/// An iteration can be captured in a CUDA graph and replayed, but for Average::samples; every rank then replays
/// alike, and the order of the buckets stays as it was. Graphs go before the reducer, when their replays have
/// ended. Reducers of ranks that share a device go when none of those ranks has calls to make: freeing device
/// memory waits for them.
///
/// Differences: GradientOptions::overlap, hook, trace and progress_core are for host memory, as is join. Since
/// no host waits for another in an iteration, a wrong mark, or one that is missing, ends the communicator on all
/// ranks: the rank that made it throws UsageError, the others PeerError with its text. Statistics have no
/// times. Host threads meet where the reducer is made, at the end of the first iteration (unless it is captured
/// or order_by_arrival is off), and with Average::samples at an iteration's first mark; and a mark waits where
/// the host is far ahead. So each rank needs a thread of its own.
class RONDO_API GradientReducer {
 public:
  /// Collective. `parameters`: on the communicator's device. Throws UsageError on all ranks, as
  /// rondo::GradientReducer does, and CudaError.
  GradientReducer(Communicator& communicator, std::vector<Parameter> parameters,
                  GradientOptions options = {});
  GradientReducer(GradientReducer&&) noexcept;
  GradientReducer& operator=(GradientReducer&&) noexcept;
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;
  /// Waits for the buckets under way.
  ~GradientReducer();

  /// Gradient `parameter` is complete when what is on `stream` so far has run. Any thread may call.
  void mark_ready(std::size_t parameter, Stream stream);
  /// As rondo::GradientReducer::set_samples.
  void set_samples(std::uint64_t samples);
  /// What is enqueued on `stream` from now on finds the averages in place. The next iteration's gradients are
  /// written behind that.
  void finish(Stream stream);

  /// The gradient, wherever it lies; it moves where layout() changes.
  template <Element T>
  [[nodiscard]] std::span<T> gradient(std::size_t parameter) const {
    return {static_cast<T*>(gradient(parameter, kDataTypeOf<T>)), count(parameter)};
  }
  [[nodiscard]] void* gradient(std::size_t parameter, DataType type) const;
  [[nodiscard]] std::size_t count(std::size_t parameter) const;
  [[nodiscard]] int layout() const;
  [[nodiscard]] std::size_t bucket_bytes() const;
  [[nodiscard]] std::vector<std::vector<std::size_t>> buckets() const;
  [[nodiscard]] const GradientStatistics& statistics() const;

 private:
  std::unique_ptr<detail::gpu::DeviceReducer> reducer_;
};

}  // namespace rondo::cuda

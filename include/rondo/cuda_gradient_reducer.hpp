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

/// rondo::GradientReducer for device memory. The host only enqueues, and waits only where it is far
/// ahead of the device (see Communicator): a mark records an event on the stream that produces the
/// gradient; the reducer's own stream averages a bucket as soon as the events of its gradients have
/// happened; and finish() makes a stream wait for the last bucket.
///
///     rondo::cuda::GradientReducer reducer(devices, parameters);
///     for (...) {
///       forward(stream);
///       backward(stream, [&](std::size_t i) { reducer.mark_ready(i, stream); });
///       reducer.finish(stream);
///       update(stream);  // finds averages
///     }
///
/// An iteration can be captured in a CUDA graph and replayed, except with Average::samples; every
/// rank must then replay the same, and the order of the buckets no longer changes. Destroy the
/// graphs before the reducer, after their replays have ended. If ranks share a device, destroy
/// their reducers when none of those ranks has calls to make: freeing device memory waits for such
/// calls. The reducer's own memory is of cuda::Communicator::allocate: where ranks are on several
/// devices or processes, it goes back to the device as RegisteredMemory says.
///
/// As with rondo::GradientReducer, the communicator may be moved or destroyed, and other calls on
/// it in an iteration throw UsageError; those on its host() do not. Work that writes the
/// parameters' values must have ended when the reducer is made.
///
/// Differences: GradientOptions::overlap, hook, trace and progress_core are for host memory, and so
/// is join. Since hosts do not wait for each other in an iteration, a wrong or missing mark ends
/// the communicator on all ranks: the rank at fault throws UsageError, the others PeerError with
/// its text. Statistics have no times. The host threads of the ranks wait for each other when the
/// reducer is made, at the end of the first iteration (unless it is captured or order_by_arrival is
/// off), and with Average::samples at an iteration's first mark; and a mark waits where the host is
/// far ahead. So each rank needs a thread of its own.
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

  /// Says that gradient `parameter` is complete when the work that is on `stream` so far has run.
  /// Any thread may call.
  void mark_ready(std::size_t parameter, Stream stream);
  /// As rondo::GradientReducer::set_samples.
  void set_samples(std::uint64_t samples);
  /// Work that is enqueued on `stream` after this call finds the averages in place. The next
  /// iteration's gradients must be written after this point of `stream`.
  void finish(Stream stream);

  /// The gradient. If it is in the reducer's own memory, it moves when layout() changes.
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

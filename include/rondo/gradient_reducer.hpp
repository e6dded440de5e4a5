/// \file
/// Averages gradients over the ranks while backprop still computes the next ones.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/communicator.hpp>
#include <rondo/export.hpp>
#include <rondo/gradients.hpp>

namespace rondo {

namespace detail {
class HostReducer;
}

/// Groups the gradients of a model into buckets and averages each bucket over the ranks as soon as
/// backprop has produced its last gradient (Li et al., "PyTorch Distributed", VLDB 2020; buckets
/// are averaged in one fixed order, so that all ranks agree). It knows a parameter only by its
/// number, name and size, and its values while the reducer is made.
///
///     // Afterwards all ranks have rank 0's w1 and b1.
///     rondo::GradientReducer reducer(comm, {{"w1", w1_slopes, w1}, {"b1", b1_slopes, b1}});
///     for (...) {
///       forward();
///       backward([&](std::size_t i) { reducer.mark_ready(i); });
///       reducer.finish();  // averages are in w1_slopes and b1_slopes
///       update();
///     }
///
/// An iteration begins with the first mark and ends with finish(). In between, only the reducer may
/// make calls on the communicator: those of the program, and marks of another reducer of the same
/// communicator, throw UsageError. Every rank must make the same iterations. The communicator may
/// be moved; if it is destroyed, the rank stays in the group until its reducers are destroyed, too.
/// The memory of parameters must outlive the reducer. A reducer that was moved from may only be
/// destroyed or assigned to.
///
/// Threads: several threads may call mark_ready at the same time; all other members must be called
/// from one thread. With `overlap`, the reducer's thread makes the calls; between hosts this needs
/// MPI_THREAD_MULTIPLE, or MPI_THREAD_SERIALIZED if the program makes no MPI call of its own in an
/// iteration.
///
/// Errors: a wrong mark throws UsageError at once on the rank that made it, and finish() throws it
/// on every rank, with the name of the rank and of the parameter; gradients are then unspecified,
/// and the next iteration starts afresh. A wrong mark under no_sync, or while finish() runs, is
/// reported by the next finish(). A reducer that is destroyed in the middle of an iteration ends
/// the communicator, with that error's text if there is one. An error that ends the communicator
/// (MismatchError, TimeoutError, PeerError, TransportError) is thrown by finish() and by every
/// later call.
class RONDO_API GradientReducer {
 public:
  /// Collective. `parameters`: in the order of the forward pass. Compares them over the ranks, then
  /// gives all ranks rank 0's values. Throws UsageError, on all ranks, if an argument is wrong on
  /// one rank, or if a parameter or option differs between ranks; the text names the first that
  /// differs, and the ranks.
  GradientReducer(Communicator& communicator, std::vector<Parameter> parameters,
                  GradientOptions options = {});
  GradientReducer(GradientReducer&&) noexcept;
  GradientReducer& operator=(GradientReducer&&) noexcept;
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;
  ~GradientReducer();

  /// Says that gradient `parameter` is complete. It must not be touched again before finish() has
  /// returned.
  void mark_ready(std::size_t parameter);
  /// The same, and throws unless `gradient` is the memory that the reducer knows.
  template <ElementRange R>
  void mark_ready(std::size_t parameter, R&& gradient) {
    mark_ready(parameter, std::ranges::data(gradient), std::ranges::size(gradient),
               kDataTypeOf<detail::ElementOf<R>>);
  }
  void mark_ready(std::size_t parameter, const void* gradient, std::size_t count, DataType type);

  /// For Average::samples: how many samples this rank's gradients of the next iteration stand for.
  /// Must be called again for each iteration, before its first mark. 0 if this rank had no samples:
  /// its gradients are then ignored, whatever they hold.
  void set_samples(std::uint64_t samples);

  /// Waits until the averages of all gradients are in place.
  void finish();

  /// While a NoSync exists, marks and finish() average nothing: for backward passes whose gradients
  /// the caller adds up. Make and destroy it between iterations. All ranks must make equally many
  /// such passes before an iteration, else its finish() throws UsageError on all ranks; with
  /// Average::samples each rank may make as many as it likes. A pass ends with finish(), or when
  /// the last NoSync is destroyed if marks came after the last finish().
  class RONDO_API NoSync {
   public:
    explicit NoSync(GradientReducer& reducer);
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;
    ~NoSync();

   private:
    detail::HostReducer& reducer_;
  };
  [[nodiscard]] NoSync no_sync() { return NoSync(*this); }

  /// Says that this rank has no more data. It then takes part, with zeros, in the iterations of the
  /// ranks that have data, until all ranks have joined. After each iteration without an error,
  /// `after_iteration` is called: it finds the averages in place, and may update the parameters as
  /// the other ranks do. At the end all ranks have the values of a rank that joined last.
  /// Collective.
  void join(const std::function<void()>& after_iteration = {});

  /// The gradient, in the caller's memory or in the reducer's own, where it may move when layout()
  /// changes. Throws UsageError for another type than the parameter's.
  template <Element T>
  [[nodiscard]] std::span<T> gradient(std::size_t parameter) const {
    return {static_cast<T*>(gradient(parameter, kDataTypeOf<T>)), count(parameter)};
  }
  [[nodiscard]] void* gradient(std::size_t parameter, DataType type) const;
  [[nodiscard]] std::size_t count(std::size_t parameter) const;
  /// How often gradients in the reducer's own memory have moved: 0, and 1 if buckets were formed
  /// anew at the end of the first iteration. Their contents move with them.
  [[nodiscard]] int layout() const;

  /// The limit on the bytes of a bucket (GradientOptions::bucket_bytes) that is in force.
  [[nodiscard]] std::size_t bucket_bytes() const;
  /// The parameters of each bucket, in the order in which buckets are averaged.
  [[nodiscard]] std::vector<std::vector<std::size_t>> buckets() const;
  /// The hardware thread or core that the reducer's thread is bound to, and why, as readable text.
  [[nodiscard]] std::string progress_place() const;

  /// Of the iteration that finished last.
  [[nodiscard]] const GradientStatistics& statistics() const;

  /// Adds a time span of this rank's work to the timeline's row of computations; does nothing
  /// without GradientOptions::trace. Each mark adds the span that it ends by itself.
  void record_compute(std::string_view what, std::chrono::steady_clock::time_point begin,
                      std::chrono::steady_clock::time_point end);
  /// Collective: rank 0 writes the timelines of all ranks to `file`, in Chrome's trace format,
  /// which Perfetto (ui.perfetto.dev) opens. Each rank is shown as a process; its rows are the
  /// rank's computations, buckets that waited for their turn, buckets in transfer, and packing,
  /// scaling and unpacking. Clocks of several hosts are aligned to within the time of a barrier.
  /// Throws UsageError, on all ranks, if a rank does not trace or the file cannot be written.
  void write_trace(const std::string& file);

 private:
  std::unique_ptr<detail::HostReducer> reducer_;
};

}  // namespace rondo

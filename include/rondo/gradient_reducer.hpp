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

/// Groups the gradients of a model into buckets and averages each over the ranks as soon as backprop has
/// produced the last gradient of it (Li et al., "PyTorch Distributed", VLDB 2020; buckets go in one fixed
/// order, so that all ranks agree). It knows parameters only by number, name and size.
///
///     rondo::GradientReducer reducer(comm, {{"w1", w1_slopes}, {"b1", b1_slopes}});
///     for (...) {
///       forward();
///       backward([&](std::size_t i) { reducer.mark_ready(i); });
///       reducer.finish();  // averages are in w1_slopes and b1_slopes
///       update();
///     }
///
/// An iteration begins with the first mark and ends with finish(). In between, the communicator is the
/// reducer's: make no other call on it. Every rank makes the same iterations. The
/// communicator, and the memory of parameters, must outlive the reducer; nor may the communicator be moved
/// meanwhile. A reducer that was moved from may only be destroyed or assigned to.
///
/// Threads: mark_ready may be called from any threads at once; all else from one. With `overlap`, the
/// reducer's thread makes the calls, which between hosts need MPI_THREAD_MULTIPLE; or MPI_THREAD_SERIALIZED, if
/// the program makes no MPI call of its own in an iteration.
///
/// Errors: a wrong mark throws UsageError on the rank that made it, at once, and so does finish() on every
/// rank, with the name of the rank and of the parameter; gradients are then unspecified, and the next
/// iteration starts afresh. (Of marks made under no_sync, or while finish() runs, the next finish() tells.) A reducer that is destroyed in the middle of an iteration ends the communicator,
/// with that error's text if there is one. What ends the communicator (MismatchError, TimeoutError, PeerError,
/// TransportError) is thrown by finish(), and by every later call.
class RONDO_API GradientReducer {
 public:
  /// Collective. `parameters`: in the order of the forward pass. Compares them over the ranks, then gives all
  /// ranks rank 0's values. Throws UsageError, on all ranks, where an argument is wrong on one, or which
  /// parameter or option is the first that differs, and on which ranks.
  GradientReducer(Communicator& communicator, std::vector<Parameter> parameters,
                  GradientOptions options = {});
  GradientReducer(GradientReducer&&) noexcept;
  GradientReducer& operator=(GradientReducer&&) noexcept;
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;
  ~GradientReducer();

  /// Gradient `parameter` is complete, and not touched again before finish() has returned.
  void mark_ready(std::size_t parameter);
  /// The same, and throws unless `gradient` is the memory that the reducer knows.
  template <ElementRange R>
  void mark_ready(std::size_t parameter, R&& gradient) {
    mark_ready(parameter, std::ranges::data(gradient), std::ranges::size(gradient),
               kDataTypeOf<detail::ElementOf<R>>);
  }
  void mark_ready(std::size_t parameter, const void* gradient, std::size_t count, DataType type);

  /// How many samples this rank's gradients of the coming iteration stand for; before its first mark. For
  /// Average::samples, which asks for it anew each time; 0 where a rank had none: whatever is in its
  /// gradients then counts for nothing.
  void set_samples(std::uint64_t samples);

  /// Until the averages of all gradients are in place.
  void finish();

  /// While one lives, marks only say that gradients pass by, and finish() does nothing: for passes whose
  /// gradients the caller adds up. Made and destroyed between iterations. All ranks make as many such passes
  /// before an iteration, else its finish() is a UsageError on all; with Average::samples each rank may make as
  /// many as it likes. A pass ends with finish(), or with the last NoSync if marks came since.
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

  /// This rank has no more data. Takes part in the iterations of those that have, with zeros, until all have
  /// joined. After each that went well, `after_iteration` finds their averages in place, and may take the same step as they
  /// do; at the end all ranks have the values of one that joined last. Collective.
  void join(const std::function<void()>& after_iteration = {});

  /// The gradient, wherever it lies. Memory of the reducer's own may move when layout() changes. Throws
  /// UsageError for another type.
  template <Element T>
  [[nodiscard]] std::span<T> gradient(std::size_t parameter) const {
    return {static_cast<T*>(gradient(parameter, kDataTypeOf<T>)), count(parameter)};
  }
  [[nodiscard]] void* gradient(std::size_t parameter, DataType type) const;
  [[nodiscard]] std::size_t count(std::size_t parameter) const;
  /// Counts how often gradients of the reducer's own have moved: 0, and 1 if buckets were formed anew at the
  /// end of the first iteration; what lies in them moves along.
  [[nodiscard]] int layout() const;

  /// The cap in force.
  [[nodiscard]] std::size_t bucket_bytes() const;
  /// The parameters of each bucket, in the order in which buckets go.
  [[nodiscard]] std::vector<std::vector<std::size_t>> buckets() const;
  /// The hardware thread or core that the reducer's thread is bound to, and why; for people.
  [[nodiscard]] std::string progress_place() const;

  /// Of the iteration that finished last.
  [[nodiscard]] const GradientStatistics& statistics() const;

  /// Adds a stretch of this rank's work to the timeline's row of computations; nothing without
  /// GradientOptions::trace. Marks add what ends with them by themselves.
  void record_compute(std::string_view what, std::chrono::steady_clock::time_point begin,
                      std::chrono::steady_clock::time_point end);
  /// Collective: rank 0 writes the timelines of all ranks to `file`, in Chrome's trace format, which Perfetto
  /// (ui.perfetto.dev) opens. A process stands for each rank; its rows are what it computed, buckets that
  /// waited for their turn, buckets that travelled, and packing, scaling and unpacking. Clocks of several
  /// hosts are aligned to the time a barrier takes. Throws UsageError, on
  /// all ranks, where one does not trace or the file cannot be written.
  void write_trace(const std::string& file);

 private:
  std::unique_ptr<detail::HostReducer> reducer_;
};

}  // namespace rondo

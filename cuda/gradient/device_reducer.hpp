// A gradient reducer over device memory: the host only enqueues, and events order what runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include <rondo/cuda.hpp>
#include <rondo/gradients.hpp>

#include "base/owner_process.hpp"
#include "cuda/api/handles.hpp"
#include "cuda/api/operations_ahead.hpp"
#include "gradient/bucketed_model.hpp"
#include "gradient/iteration.hpp"
#include "gradient/recorder.hpp"
#include "gradient/rounds.hpp"

namespace rondo::detail::gpu {

// The stream on which a reducer packs, sums and unpacks, and its events.
class ReducerStream {
 public:
  ReducerStream(int device, std::size_t gradients);
  ReducerStream(const ReducerStream&) = delete;
  ReducerStream& operator=(const ReducerStream&) = delete;
  ~ReducerStream() { wait(); }

  // Waits until all work on the stream has run; does not wait for a device that has failed.
  void wait() noexcept;
  [[nodiscard]] api::Stream get() const { return stream_.get(); }
  [[nodiscard]] api::Event produced(std::size_t gradient) const {
    return produced_[gradient].get();
  }
  [[nodiscard]] api::Event finished() const { return finished_.get(); }
  // Counts this stream's operations, except those of collectives.
  [[nodiscard]] OperationsAhead& ahead() { return ahead_; }
  // Work that is enqueued on this stream from now on waits for the event.
  void follow(api::Event event);
  // Marks with `event` what the program has enqueued on its stream.
  void record_on(api::Stream stream, api::Event event) const;
  // Work that the program enqueues on its stream from now on waits for this stream's.
  void let_follow(api::Stream stream, api::Event event) const;

 private:
  int device_;
  OwnedStream stream_;
  OwnedEvent finished_;
  std::vector<OwnedEvent> produced_;  // by parameter
  OperationsAhead ahead_;
};

class DeviceReducer {
 public:
  DeviceReducer(cuda::Communicator& program, std::vector<Parameter> parameters,
                GradientOptions options);
  DeviceReducer(const DeviceReducer&) = delete;
  DeviceReducer& operator=(const DeviceReducer&) = delete;
  ~DeviceReducer();

  void mark_ready(std::size_t parameter, api::Stream stream);
  void set_samples(std::uint64_t samples);
  void finish(api::Stream stream);

  const OwnerProcess owner_process;

  [[nodiscard]] const BucketedModel& model() const { return model_; }
  [[nodiscard]] const GradientStatistics& statistics() const { return recorder_.statistics(); }

 private:
  static ReducerStream make_stream(cuda::Communicator& communicator, std::size_t gradients);
  void set_up();
  double call_us(std::size_t bytes);

  // An error in the middle of an iteration ends the communicator on all ranks. Gives the
  // communicator back where no iteration is open any more.
  template <class Function>
  void or_end(Function&& function);
  void give_up(const std::exception& error);
  void give_back();
  // A complaint ends the communicator, and is thrown.
  void refuse(const Complaint& complaint);

  // The caller holds the lock.
  void mark(std::size_t parameter, api::Stream stream);
  void close(api::Stream stream);
  void begin(api::Stream stream);
  void take_due_buckets();
  void clear_missing(api::Stream stream);
  void end_iteration(bool captured);
  bool follow_arrival();

  cuda::Communicator communicator_;  // the reducer's own, of the caller's state
  ReducerStream stream_;
  BucketedModel model_;

  // Guards the model and all that follows, in mark_ready(), set_samples() and finish(). Other
  // members are called while none of these runs.
  std::mutex mutex_;
  Iteration iteration_;
  Rounds rounds_;
  Recorder recorder_;
};

}  // namespace rondo::detail::gpu

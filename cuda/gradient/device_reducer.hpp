// A gradient reducer over device memory: the host only enqueues; events order what runs.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include <rondo/cuda.hpp>
#include <rondo/gradients.hpp>

#include "api/api.hpp"
#include "base/owner_process.hpp"
#include "gradient/averaging.hpp"
#include "gradient/complaint.hpp"
#include "gradient/gradient_store.hpp"
#include "gradient/ledger.hpp"
#include "group/operations_ahead.hpp"

namespace rondo::detail::gpu {

// A stream and the events of a reducer, on a device.
class ReducerStream {
 public:
  ReducerStream(int device, std::size_t gradients);
  ReducerStream(const ReducerStream&) = delete;
  ReducerStream& operator=(const ReducerStream&) = delete;
  ~ReducerStream();

  void wait() noexcept;
  [[nodiscard]] api::Stream get() const { return stream_; }
  [[nodiscard]] api::Event produced(std::size_t gradient) const { return produced_[gradient]; }
  [[nodiscard]] api::Event finished() const { return finished_; }
  // Counts this stream's operations, but for those of collectives.
  [[nodiscard]] OperationsAhead& ahead() { return *ahead_; }
  // What follows on this stream waits for the event.
  void follow(api::Event event);

 private:
  int device_;
  api::Stream stream_ = nullptr;
  api::Event finished_ = nullptr;
  std::vector<api::Event> produced_;  // by parameter
  std::optional<OperationsAhead> ahead_;
};

class DeviceReducer {
 public:
  DeviceReducer(cuda::Communicator& communicator, std::vector<Parameter> parameters,
                GradientOptions options);
  DeviceReducer(const DeviceReducer&) = delete;
  DeviceReducer& operator=(const DeviceReducer&) = delete;
  ~DeviceReducer();

  void mark_ready(std::size_t parameter, api::Stream stream);
  void set_samples(std::uint64_t samples);
  void finish(api::Stream stream);

  const OwnerProcess owner_process;

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const GradientStore& store() const { return store_; }
  [[nodiscard]] int layout() const { return layout_; }
  [[nodiscard]] std::size_t bucket_bytes() const { return limits_.bytes; }
  [[nodiscard]] const GradientStatistics& statistics() const { return finished_; }

 private:
  // A CudaError ends the communicator for all.
  template <class Function>
  void or_end(Function&& function);
  // With the lock held.
  void mark(std::size_t parameter, api::Stream stream);
  void close(api::Stream stream);
  void begin(api::Stream stream);
  void settle_averaging();
  // Ends the communicator, and throws.
  [[noreturn]] void complain(Wrong what, std::size_t parameter);
  void take_complete_buckets();
  void take_round(std::size_t bucket);
  void account();
  void follow_arrival();

  static ReducerStream make_stream(cuda::Communicator& communicator, std::size_t gradients);
  void set_up();
  void form_buckets(const std::vector<std::uint32_t>& order);
  void check_algorithm() const;
  double call_us(std::size_t bytes);
  [[nodiscard]] Call call_of(std::size_t bucket) const;
  [[nodiscard]] Call all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) const;

  cuda::Communicator& communicator_;
  std::vector<Parameter> parameters_;
  GradientOptions options_;
  std::vector<ParameterShape> shapes_;
  BucketLimits limits_;
  ReducerStream stream_;
  GradientStore store_;

  std::mutex mutex_;
  Ledger ledger_;
  bool open_ = false;
  std::optional<std::uint64_t> samples_;
  Averaging averaging_;
  std::size_t next_ = 0;  // the bucket that goes next
  bool ordered_ = false;  // buckets follow the arrival, or need not
  std::uint64_t iterations_ = 0;
  int layout_ = 0;
  GradientStatistics finished_;
};

}  // namespace rondo::detail::gpu

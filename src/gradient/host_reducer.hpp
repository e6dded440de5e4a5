// A gradient reducer over host memory: drives the rounds of an iteration on a thread of its own, or
// in finish().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <rondo/gradients.hpp>

#include "base/owner_process.hpp"
#include "gradient/reducer_state.hpp"
#include "gradient/rounds_driver.hpp"

namespace rondo::detail {

class HostReducer {
 public:
  HostReducer(Communicator& program, std::vector<Parameter> parameters, GradientOptions options);
  HostReducer(const HostReducer&) = delete;
  HostReducer& operator=(const HostReducer&) = delete;
  ~HostReducer();

  void mark_ready(std::size_t parameter);
  void mark_ready(std::size_t parameter, const void* gradient, std::size_t count, DataType type);
  void set_samples(std::uint64_t samples);
  void finish();
  void pause();
  void go_on() noexcept;
  void join(const std::function<void()>& after_iteration);

  void record_compute(std::string_view what, Clock::time_point begin, Clock::time_point end);
  void write_trace(const std::string& file);

  const OwnerProcess owner_process;

  [[nodiscard]] const BucketedModel& model() const { return state_.model; }
  [[nodiscard]] const std::string& progress_place() const { return progress_place_; }
  [[nodiscard]] const GradientStatistics& statistics() const {
    return state_.recorder.statistics();
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void set_up();
  [[nodiscard]] std::string objection_to_direct() const;
  void start_thread();
  [[nodiscard]] std::string place_thread();
  void stop_thread();
  void refuse_wrong_thread(const char* call) const;

  // The caller holds the lock.
  void throw_if_failed() const;
  void begin(Clock::time_point now, bool has_joined);
  void mark(Lock lock, std::size_t parameter, Wrong wrong);
  void throw_noted(const Complaint& complaint);
  [[nodiscard]] std::string text_of(const Complaint& complaint) const;
  void run_and_wait(Lock& lock);
  void end_iteration(Clock::time_point finish_began);

  ReducerState state_;
  RoundsDriver driver_;
  std::string progress_place_;
  std::thread thread_;
};

}  // namespace rondo::detail

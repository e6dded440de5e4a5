// A gradient reducer over host memory: drives the rounds of an iteration on a thread of its own, or in finish().
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <rondo/gradients.hpp>

#include "base/owner_process.hpp"
#include "gradient/bucketed_model.hpp"
#include "gradient/iteration.hpp"
#include "gradient/recorder.hpp"
#include "gradient/rounds.hpp"

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

  [[nodiscard]] const BucketedModel& model() const { return model_; }
  [[nodiscard]] const std::string& progress_place() const { return progress_place_; }
  [[nodiscard]] const GradientStatistics& statistics() const { return recorder_.statistics(); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void set_up();
  [[nodiscard]] std::string objection_to_direct() const;
  void start_thread();
  [[nodiscard]] std::string place_thread();
  void stop_thread();
  void abort(const char* reason);
  void refuse_wrong_thread(const char* call) const;

  // With the lock held.
  void throw_if_failed() const;
  void take_communicator();
  void give_back_communicator();
  void begin(Clock::time_point now, bool has_joined);
  void mark(Lock lock, std::size_t parameter, Wrong wrong);
  void throw_noted(const Complaint& complaint);
  [[nodiscard]] std::string text_of(const Complaint& complaint) const;
  void run_and_wait(Lock& lock);
  void end_iteration(Clock::time_point finish_began);

  // By the thread that drives the rounds (the reducer's, or that of finish()), without the lock.
  void serve();
  void run_iteration();
  void communicate();
  void open();
  [[nodiscard]] Clock::time_point wait_for(std::size_t bucket);
  void take(std::size_t bucket, Clock::time_point filled);
  void call_or_hook(std::size_t bucket, Call call);
  void close();
  void follow_arrival();

  Communicator communicator_;  // the reducer's own, of the caller's state
  BucketedModel model_;
  std::string progress_place_;
  std::thread thread_;

  // The lock guards the members from here to `failure_`. The thread that drives the rounds also reads `agreed_`, which
  // it alone writes while an iteration is open, and the order of arrival once nothing more is marked.
  std::mutex mutex_;
  std::condition_variable wake_;      // what the thread waits for
  std::condition_variable returned_;  // what finish() waits for
  Iteration iteration_;
  bool done_ = false;  // the rounds of the iteration have ended
  bool stop_ = false;  // the thread is to end
  bool reordered_ = false;
  Complaint agreed_;  // by all ranks, as the iteration closed
  std::exception_ptr failure_;

  Rounds rounds_;      // used by the thread that drives them; by others only while none runs
  Recorder recorder_;  // its header says which part of it the lock guards
};

}  // namespace rondo::detail

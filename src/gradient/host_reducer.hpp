// A gradient reducer over host memory: the state of an iteration, and the thread that takes buckets round.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <rondo/gradients.hpp>

#include "base/owner_process.hpp"
#include "gradient/averaging.hpp"
#include "gradient/complaint.hpp"
#include "gradient/gradient_store.hpp"
#include "gradient/ledger.hpp"
#include "gradient/timeline.hpp"

namespace rondo::detail {

// One iteration, on every rank, in calls that all ranks make alike:
//
//   opening   how many samples each rank has, and who has joined
//   bucket 0, bucket 1, ...   each as soon as it is complete here, in this order
//   closing   whether any rank did something wrong
//
// By whom: the reducer's thread, or finish() where there is no overlap.
class HostReducer {
 public:
  HostReducer(Communicator& communicator, std::vector<Parameter> parameters,
              GradientOptions options);
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

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const GradientStore& store() const { return store_; }
  [[nodiscard]] int layout() const { return layout_; }
  [[nodiscard]] std::size_t bucket_bytes() const { return limits_.bytes; }
  [[nodiscard]] const std::string& progress_place() const { return progress_place_; }
  [[nodiscard]] const GradientStatistics& statistics() const { return finished_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // With the lock held.
  void throw_if_failed() const;
  void begin(Clock::time_point now);
  [[noreturn]] void complain(Wrong what, std::size_t parameter);
  void note(const Complaint& complaint);
  [[nodiscard]] std::string text_of(const Complaint& complaint) const;
  [[nodiscard]] std::size_t ranks() const { return words_.size() / 2; }
  [[nodiscard]] bool takes_part(std::size_t rank) const;
  void run_and_wait(Lock& lock);
  void end_iteration(Clock::time_point blocked_since);
  [[nodiscard]] double us_since_first_mark(Clock::time_point now) const;

  // By whoever takes buckets round, without the lock.
  void serve();
  void refuse_wrong_thread(const char* what) const;
  void run_iteration();
  void communicate();
  bool all_have_joined();
  void compare_passes();
  void await(std::size_t bucket);
  void take_round(std::size_t bucket);
  void send(std::size_t bucket);
  void close();
  void follow_arrival();
  void end_of_join();
  [[nodiscard]] Call call_of(std::size_t bucket) const;
  [[nodiscard]] Call all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) const;
  void trace(Row row, std::size_t bucket, Clock::time_point begin, Clock::time_point end);

  void set_up();
  void abort(const char* reason);
  void form_buckets(const std::vector<std::uint32_t>& order);
  void check_algorithm() const;
  void start_thread();
  void stop_thread();

  Communicator& communicator_;
  std::vector<Parameter> parameters_;
  GradientOptions options_;
  std::vector<ParameterShape> shapes_;
  BucketLimits limits_;
  GradientStore store_;
  std::string progress_place_;
  std::thread thread_;

  // Guarded by the lock.
  std::mutex mutex_;
  std::condition_variable wake_;      // what the thread waits for
  std::condition_variable returned_;  // what finish() waits for
  Ledger ledger_;
  bool open_ = false;       // an iteration has begun
  bool finishing_ = false;  // nothing more will be marked
  bool done_ = false;       // all of it has been taken round
  bool shadow_ = false;     // this rank has joined
  int paused_ = 0;          // under how many no_sync
  bool stop_ = false;
  bool passing_ = false;      // marks have come under no_sync that no finish() has ended
  std::uint64_t passes_ = 0;  // under no_sync, since the last iteration
  std::optional<std::uint64_t> samples_;
  Complaint own_;
  Complaint agreed_;
  std::exception_ptr failure_;
  std::size_t next_ = 0;  // the bucket that goes next
  Clock::time_point first_mark_;
  Clock::time_point last_mark_;
  std::uint64_t iterations_ = 0;  // that have ended
  GradientStatistics building_;
  std::vector<Stretch> computed_;

  // Of whoever takes buckets round; others look between iterations.
  std::vector<std::uint64_t> words_;         // one of each rank, then its passes under no_sync
  std::vector<std::uint64_t> words_before_;  // of the opening before
  Averaging averaging_;
  bool all_joined_ = false;
  bool ordered_ = false;  // buckets follow the arrival, or need not
  int layout_ = 0;
  GradientStatistics finished_;
  std::vector<Stretch> travelled_;
};

}  // namespace rondo::detail

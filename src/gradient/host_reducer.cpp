// The caller's side; the side of the thread that drives the rounds is in host_reducer_rounds.cpp.
#include "gradient/host_reducer.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <rondo/thread_binding.hpp>

#include "base/threads.hpp"
#include "communicator/state.hpp"
#include "communicator/within_function.hpp"
#include "gradient/agreement.hpp"
#include "gradient/bucket_size.hpp"

namespace rondo::detail {

HostReducer::HostReducer(Communicator& program, std::vector<Parameter> parameters,
                         GradientOptions options)
    : communicator_(share(program, this)),
      model_(std::move(parameters), std::move(options), host_memory(communicator_)),
      iteration_(communicator_.rank(), model_.parameters(), model_.options()),
      rounds_(communicator_, model_,
              [this](std::size_t bucket, const Call& call) { call_or_hook(bucket, call); }),
      recorder_(model_.options().trace, model_.parameters().size()) {
  const WithinFunction making(PartOf::making_reducer, model_.options().timeout);
  require_same_model(
      communicator_, model_.parameters(), model_.options(), {},
      [](void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); });
  try {
    set_up();
  } catch (const UsageError&) {
    throw;  // on all ranks
  } catch (const std::exception& error) {
    abort(error.what());
    throw;
  }
}

void HostReducer::set_up() {
  take_values(model_, 0, [this](const Call& call) { communicator_.run(call); });
  model_.form(limits_for(model_.options(), model_.shapes(), communicator_,
                         [this](std::size_t bytes) { return call_us(communicator_, bytes); }));
  iteration_.follow(model_.buckets());
  model_.require_algorithm([this](const Call& call) { return communicator_.algorithm_for(call); });
  if (model_.options().algorithm == Algorithm::direct) {
    require_equal_lines(communicator_, objection_to_direct(), {});
  }
  progress_place_ = "the caller's thread";
  if (model_.options().overlap) start_thread();
}

// Why direct, which the options name, cannot carry the buckets of this rank; empty if it can.
std::string HostReducer::objection_to_direct() const {
  for (std::size_t bucket = 0; bucket < model_.buckets().size(); ++bucket) {
    if (shows_buffers(communicator_, model_.call_of(bucket, ReduceOp::sum))) continue;
    return fmt::format(
        "rank {}: GradientOptions::algorithm is direct, but other ranks cannot reach the gradients "
        "of "
        "bucket {}; let the reducer own them (Parameter::owned), or keep them in memory of "
        "Communicator::allocate",
        communicator_.rank(), bucket);
  }
  return {};
}

// If the new thread cannot be bound or may not make calls, all ranks throw, before it has made any call.
void HostReducer::start_thread() {
  std::string objection;
  bool up = false;
  thread_ = detail::start_thread("makes the reducer's calls", [&, this] {
    std::string mine = place_thread();
    {
      const std::lock_guard lock(mutex_);
      objection = std::move(mine);
      up = true;  // `up` and `objection` may be gone from here on
      returned_.notify_all();
    }
    serve();
  });
  {
    Lock lock(mutex_);
    returned_.wait(lock, [&] { return up; });
  }
  try {
    require_equal_lines(communicator_, objection, {});
  } catch (...) {
    stop_thread();
    throw;
  }
}

// Binds this thread to its core. Returns why it cannot be bound or may not make calls; empty if it can.
std::string HostReducer::place_thread() {
  try {
    progress_place_ = bind_beside_compute(communicator_.topology(), communicator_.rank(),
                                          model_.options().progress_core);
    const std::string objection = objection_to_calls_here(communicator_);
    if (objection.empty()) return {};
    return fmt::format(
        "rank {}: GradientOptions::overlap has a thread of its own make the calls: {}; or set "
        "overlap = false",
        communicator_.rank(), objection);
  } catch (const std::exception& error) {
    return error.what();
  }
}

void HostReducer::stop_thread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

HostReducer::~HostReducer() {
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    if (iteration_.is_open() && !done_) {
      reason = iteration_.noted()
                   ? text_of(iteration_.noted())
                   : fmt::format("rank {}: {}", communicator_.rank(), kReducerDestroyed);
    }
  }
  // Before the thread stops, since it would abort with a less precise reason, and the first reason is kept.
  if (!reason.empty()) communicator_.abort(reason);
  stop_thread();
  give_back_communicator();
}

// Otherwise the other ranks would wait for this one. If the communicator has ended already, its first reason is kept.
void HostReducer::abort(const char* reason) {
  communicator_.abort(
      fmt::format("rank {}: the gradient reducer failed: {}", communicator_.rank(), reason));
}

// Without overlap the caller's thread makes the calls: throws before anything has begun if MPI's thread level forbids
// them on this thread.
void HostReducer::refuse_wrong_thread(const char* call) const {
  if (model_.options().overlap) return;
  const std::string objection = objection_to_calls_here(communicator_);
  if (objection.empty()) return;
  throw UsageError(fmt::format("rank {}: {}: {}", communicator_.rank(), call, objection));
}

void HostReducer::throw_if_failed() const {
  if (failure_) std::rethrow_exception(failure_);
}

std::string HostReducer::text_of(const Complaint& complaint) const {
  if (complaint.what == Wrong::passes) return rounds_.opening().text_of_passes(complaint.rank);
  return iteration_.text_of(complaint);
}

void HostReducer::throw_noted(const Complaint& complaint) {
  if (!complaint) return;
  iteration_.note(complaint);
  throw UsageError(text_of(complaint));
}

// Throws before anything has begun if another reducer is in the middle of an iteration.
void HostReducer::take_communicator() {
  state_of(communicator_).exclusive_use.take(this, communicator_.rank());
}

void HostReducer::give_back_communicator() {
  state_of(communicator_).exclusive_use.give_back(this);
}

void HostReducer::begin(Clock::time_point now, bool has_joined) {
  done_ = reordered_ = false;
  agreed_ = {};
  recorder_.begin(now, model_.buckets().size());
  const Complaint complaint = iteration_.begin(has_joined);
  wake_.notify_one();
  throw_noted(complaint);
}

void HostReducer::mark_ready(std::size_t parameter) {
  mark(Lock(mutex_), parameter, Wrong::nothing);
}

void HostReducer::mark_ready(std::size_t parameter, const void* gradient, std::size_t count,
                             DataType type) {
  Lock lock(mutex_);
  const Wrong wrong = model_.wrong_with(parameter, gradient, count, type);
  mark(std::move(lock), parameter, wrong);
}

void HostReducer::mark(Lock lock, std::size_t parameter, Wrong wrong) {
  throw_if_failed();
  if (iteration_.is_paused()) {
    throw_noted(iteration_.mark_in_pass(parameter, wrong));
    return;
  }
  const Clock::time_point now = Clock::now();
  if (!iteration_.is_open()) {
    take_communicator();
    begin(now, false);
  }
  throw_noted(iteration_.mark(parameter, wrong));
  recorder_.mark(model_.parameters()[parameter].name, now);
  const std::size_t bucket = iteration_.ledger().bucket_of(parameter);
  if (!iteration_.ledger().complete(bucket)) return;
  recorder_.fill(bucket, now);
  if (bucket != iteration_.next()) return;
  lock.unlock();  // so that the woken thread need not wait for it
  wake_.notify_one();
}

void HostReducer::set_samples(std::uint64_t samples) {
  const Lock lock(mutex_);
  throw_if_failed();
  iteration_.set_samples(samples);
}

void HostReducer::run_and_wait(Lock& lock) {
  iteration_.finish();
  if (model_.options().overlap) {
    wake_.notify_one();
    returned_.wait(lock, [this] { return done_; });
  } else {
    lock.unlock();
    run_iteration();
    lock.lock();
  }
}

void HostReducer::end_iteration(Clock::time_point finish_began) {
  const Clock::time_point now = Clock::now();
  iteration_.end();
  give_back_communicator();
  if (failure_ || rounds_.opening().all_have_joined()) {
    recorder_.drop(now);
    throw_if_failed();
    return;
  }
  recorder_.end({finish_began, now, iteration_.ledger().arrival(), reordered_});
}

void HostReducer::finish() {
  Lock lock(mutex_);
  throw_if_failed();
  if (iteration_.is_paused()) {
    iteration_.end_pass();
    return;
  }
  refuse_wrong_thread("finish");
  const Clock::time_point now = Clock::now();
  if (!iteration_.is_open()) {
    take_communicator();
    try {
      begin(now, false);
    } catch (const UsageError&) {
      // The complaint is noted; all ranks report it when the iteration ends.
    }
  }
  run_and_wait(lock);
  end_iteration(now);
  if (agreed_) throw UsageError(text_of(agreed_));
}

void HostReducer::pause() {
  const Lock lock(mutex_);
  throw_if_failed();
  iteration_.require_closed("no_sync");
  iteration_.pause();
}

void HostReducer::go_on() noexcept {
  const Lock lock(mutex_);
  iteration_.go_on();
}

void HostReducer::join(const std::function<void()>& after_iteration) {
  for (;;) {
    Lock lock(mutex_);
    throw_if_failed();
    iteration_.require_closed("join");
    refuse_wrong_thread("join");
    const Clock::time_point now = Clock::now();
    take_communicator();
    begin(now, true);
    run_and_wait(lock);
    end_iteration(now);
    if (rounds_.opening().all_have_joined()) return;
    const bool went_wrong = static_cast<bool>(agreed_);
    lock.unlock();
    // After a complaint, the ranks that take part throw from finish(); this one goes on.
    if (after_iteration && !went_wrong) after_iteration();
  }
}

void HostReducer::record_compute(std::string_view what, Clock::time_point begin,
                                 Clock::time_point end) {
  if (!recorder_.traces()) return;
  const Lock lock(mutex_);
  recorder_.compute(what, begin, end);
}

void HostReducer::write_trace(const std::string& file) {
  const WithinFunction writing(PartOf::write_trace, model_.options().timeout);
  std::vector<Stretch> timeline;
  {
    const Lock lock(mutex_);
    throw_if_failed();
    iteration_.require_closed("write_trace");
    timeline = recorder_.timeline();
  }
  require_equal_lines(communicator_,
                      recorder_.traces()
                          ? std::string()
                          : fmt::format("rank {}: write_trace: GradientOptions::trace is "
                                        "not set, so there is no timeline",
                                        communicator_.rank()),
                      {});
  write_timelines(communicator_, timeline, file);
}

}  // namespace rondo::detail

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
    : state_(program, this, std::move(parameters), std::move(options)), driver_(state_) {
  const WithinFunction making(PartOf::making_reducer, state_.model.options().timeout);
  require_same_model(
      state_.communicator, state_.model.parameters(), state_.model.options(), {},
      [](void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); });
  try {
    set_up();
  } catch (const UsageError&) {
    throw;  // on all ranks
  } catch (const std::exception& error) {
    abort_for(state_.communicator, error.what());
    throw;
  }
}

void HostReducer::set_up() {
  take_values(state_.model, 0, [this](const Call& call) { state_.communicator.run(call); });
  state_.model.form(
      limits_for(state_.model.options(), state_.model.shapes(), state_.communicator,
                 [this](std::size_t bytes) { return call_us(state_.communicator, bytes); }));
  state_.iteration.set_buckets(state_.model.buckets());
  // First where the gradients are, which may be wrong on one rank alone.
  const bool has_direct = state_of(state_.communicator).wiring.offers.has(Algorithm::direct);
  if (has_direct && state_.model.options().algorithm == Algorithm::direct) {
    require_equal_lines(state_.communicator, objection_to_direct(), {});
  }
  state_.model.require_algorithm(
      [this](const Call& call) { return state_.communicator.algorithm_for(call); });
  progress_place_ = "the caller's thread";
  if (state_.model.options().overlap) start_thread();
}

// Why direct, which the options name, cannot carry the buckets of this rank; empty if it can.
std::string HostReducer::objection_to_direct() const {
  for (std::size_t bucket = 0; bucket < state_.model.buckets().size(); ++bucket) {
    if (shows_buffers(state_.communicator, state_.model.call_of(bucket, ReduceOp::sum))) continue;
    return fmt::format(
        "rank {}: GradientOptions::algorithm is direct, but other ranks cannot reach the gradients "
        "of bucket {}; let the reducer own them (Parameter::owned), or keep them in memory of "
        "rondo::reachable_memory()",
        state_.communicator.rank(), bucket);
  }
  return {};
}

// If the new thread cannot be bound or may not make calls, all ranks throw, before it has made any
// call.
void HostReducer::start_thread() {
  std::string objection;
  bool up = false;
  thread_ = detail::start_thread("makes the reducer's calls", [&, this] {
    std::string mine = place_thread();
    {
      const std::lock_guard lock(state_.mutex);
      objection = std::move(mine);
      up = true;  // `up` and `objection` may be gone from here on
      state_.returned.notify_all();
    }
    driver_.serve();
  });
  {
    Lock lock(state_.mutex);
    state_.returned.wait(lock, [&] { return up; });
  }
  try {
    require_equal_lines(state_.communicator, objection, {});
  } catch (...) {
    stop_thread();
    throw;
  }
}

// Binds this thread to its core. Returns why it cannot be bound or may not make calls; empty if it
// can.
std::string HostReducer::place_thread() {
  try {
    progress_place_ =
        bind_beside_compute(state_.communicator.topology(), state_.communicator.rank(),
                            state_.model.options().progress_core);
    const std::string objection = objection_to_calls_here(state_.communicator);
    if (objection.empty()) return {};
    return fmt::format(
        "rank {}: GradientOptions::overlap has a thread of its own make the calls: {}; or set "
        "overlap = false",
        state_.communicator.rank(), objection);
  } catch (const std::exception& error) {
    return error.what();
  }
}

void HostReducer::stop_thread() {
  {
    const std::lock_guard lock(state_.mutex);
    state_.stop = true;
    state_.wake.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

HostReducer::~HostReducer() {
  std::string reason;
  {
    const std::lock_guard lock(state_.mutex);
    if (state_.iteration.is_open() && !state_.done) {
      reason = state_.iteration.noted()
                   ? text_of(state_.iteration.noted())
                   : fmt::format("rank {}: {}", state_.communicator.rank(), kReducerDestroyed);
    }
  }
  // Before the thread stops, since it would abort with a less precise reason, and the first reason
  // is kept.
  if (!reason.empty()) state_.communicator.abort(reason);
  stop_thread();
  state_.give_back_communicator();
}

// Without overlap the caller's thread makes the calls: throws before anything has begun if MPI's
// thread level forbids them on this thread.
void HostReducer::refuse_wrong_thread(const char* call) const {
  if (state_.model.options().overlap) return;
  const std::string objection = objection_to_calls_here(state_.communicator);
  if (objection.empty()) return;
  throw UsageError(fmt::format("rank {}: {}: {}", state_.communicator.rank(), call, objection));
}

void HostReducer::throw_if_failed() const {
  if (state_.failure) std::rethrow_exception(state_.failure);
}

std::string HostReducer::text_of(const Complaint& complaint) const {
  if (complaint.what == Wrong::passes)
    return driver_.rounds().opening().text_of_passes(complaint.rank);
  return state_.iteration.text_of(complaint);
}

void HostReducer::throw_noted(const Complaint& complaint) {
  if (!complaint) return;
  state_.iteration.note(complaint);
  throw UsageError(text_of(complaint));
}

void HostReducer::begin(Clock::time_point now, bool has_joined) {
  state_.done = state_.reordered = false;
  state_.agreed = {};
  state_.recorder.begin(now, state_.model.buckets().size());
  const Complaint complaint = state_.iteration.begin(has_joined);
  state_.wake.notify_one();
  throw_noted(complaint);
}

void HostReducer::mark_ready(std::size_t parameter) {
  mark(Lock(state_.mutex), parameter, Wrong::nothing);
}

void HostReducer::mark_ready(std::size_t parameter, const void* gradient, std::size_t count,
                             DataType type) {
  Lock lock(state_.mutex);
  const Wrong wrong = state_.model.wrong_with(parameter, gradient, count, type);
  mark(std::move(lock), parameter, wrong);
}

void HostReducer::mark(Lock lock, std::size_t parameter, Wrong wrong) {
  throw_if_failed();
  if (state_.iteration.is_paused()) {
    throw_noted(state_.iteration.mark_in_pass(parameter, wrong));
    return;
  }
  const Clock::time_point now = Clock::now();
  if (!state_.iteration.is_open()) {
    state_.take_communicator();
    begin(now, false);
  }
  throw_noted(state_.iteration.mark(parameter, wrong));
  state_.recorder.mark(state_.model.parameters()[parameter].name, now);
  const std::size_t bucket = state_.iteration.ledger().bucket_of(parameter);
  if (!state_.iteration.ledger().complete(bucket)) return;
  state_.recorder.fill(bucket, now);
  if (bucket != state_.iteration.next()) return;
  lock.unlock();  // so that the woken thread need not wait for it
  state_.wake.notify_one();
}

void HostReducer::set_samples(std::uint64_t samples) {
  const Lock lock(state_.mutex);
  throw_if_failed();
  state_.iteration.set_samples(samples);
}

void HostReducer::run_and_wait(Lock& lock) {
  state_.iteration.finish();
  if (state_.model.options().overlap) {
    state_.wake.notify_one();
    state_.returned.wait(lock, [this] { return state_.done; });
  } else {
    lock.unlock();
    driver_.run_iteration();
    lock.lock();
  }
}

void HostReducer::end_iteration(Clock::time_point finish_began) {
  const Clock::time_point now = Clock::now();
  state_.iteration.end();
  state_.give_back_communicator();
  if (state_.failure || driver_.rounds().opening().all_have_joined()) {
    state_.recorder.drop(now);
    throw_if_failed();
    return;
  }
  state_.recorder.end({finish_began, now, state_.iteration.ledger().arrival(), state_.reordered});
}

void HostReducer::finish() {
  Lock lock(state_.mutex);
  throw_if_failed();
  if (state_.iteration.is_paused()) {
    state_.iteration.end_pass();
    return;
  }
  refuse_wrong_thread("finish");
  const Clock::time_point now = Clock::now();
  if (!state_.iteration.is_open()) {
    state_.take_communicator();
    try {
      begin(now, false);
    } catch (const UsageError&) {
      // The complaint is noted; all ranks report it when the iteration ends.
    }
  }
  run_and_wait(lock);
  end_iteration(now);
  if (state_.agreed) throw UsageError(text_of(state_.agreed));
}

void HostReducer::pause() {
  const Lock lock(state_.mutex);
  throw_if_failed();
  state_.iteration.require_closed("no_sync");
  state_.iteration.pause();
}

void HostReducer::go_on() noexcept {
  const Lock lock(state_.mutex);
  state_.iteration.go_on();
}

void HostReducer::join(const std::function<void()>& after_iteration) {
  for (;;) {
    Lock lock(state_.mutex);
    throw_if_failed();
    state_.iteration.require_closed("join");
    refuse_wrong_thread("join");
    const Clock::time_point now = Clock::now();
    state_.take_communicator();
    begin(now, true);
    run_and_wait(lock);
    end_iteration(now);
    if (driver_.rounds().opening().all_have_joined()) return;
    const bool went_wrong = static_cast<bool>(state_.agreed);
    lock.unlock();
    // After a complaint, the ranks that take part throw from finish(); this one goes on.
    if (after_iteration && !went_wrong) after_iteration();
  }
}

void HostReducer::record_compute(std::string_view what, Clock::time_point begin,
                                 Clock::time_point end) {
  if (!state_.recorder.traces()) return;
  const Lock lock(state_.mutex);
  state_.recorder.compute(what, begin, end);
}

void HostReducer::write_trace(const std::string& file) {
  const WithinFunction writing(PartOf::write_trace, state_.model.options().timeout);
  std::vector<Stretch> timeline;
  {
    const Lock lock(state_.mutex);
    throw_if_failed();
    state_.iteration.require_closed("write_trace");
    timeline = state_.recorder.timeline();
  }
  require_equal_lines(state_.communicator,
                      state_.recorder.traces()
                          ? std::string()
                          : fmt::format("rank {}: write_trace: GradientOptions::trace is "
                                        "not set, so there is no timeline",
                                        state_.communicator.rank()),
                      {});
  write_timelines(state_.communicator, timeline, file);
}

}  // namespace rondo::detail

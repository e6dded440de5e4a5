#include "gradient/rounds_driver.hpp"

#include <utility>

#include <fmt/format.h>

#include "communicator/within_function.hpp"

namespace rondo::detail {
namespace {

using Lock = std::unique_lock<std::mutex>;

}  // namespace

RoundsDriver::RoundsDriver(ReducerState& state)
    : state_(state),
      rounds_(state.communicator, state.model,
              [this](std::size_t bucket, const Call& call) { call_or_hook(bucket, call); }) {}

void abort_for(Communicator& communicator, const char* reason) {
  communicator.abort(
      fmt::format("rank {}: the gradient reducer failed: {}", communicator.rank(), reason));
}

void RoundsDriver::serve() {
  Lock lock(state_.mutex);
  for (;;) {
    state_.wake.wait(
        lock, [this] { return state_.stop || (state_.iteration.is_open() && !state_.done); });
    if (state_.stop) return;
    lock.unlock();
    run_iteration();
    lock.lock();
  }
}

void RoundsDriver::run_iteration() {
  std::exception_ptr error;
  try {
    communicate();
  } catch (const std::exception& reason) {
    error = std::current_exception();
    abort_for(state_.communicator, reason.what());
  } catch (...) {
    error = std::current_exception();
    abort_for(state_.communicator, "an exception of no standard type");
  }
  const Lock lock(state_.mutex);
  // Calls of the program are to say why the communicator has ended; finish() may never be called.
  if (error) state_.give_back_communicator();
  state_.failure = error;
  state_.done = true;
  state_.returned.notify_all();
}

void RoundsDriver::communicate() {
  open();
  if (rounds_.opening().all_have_joined()) {
    const WithinFunction iteration(PartOf::iteration, state_.model.options().timeout);
    rounds_.take_last_values();
    return;
  }
  for (std::size_t bucket = 0; bucket < state_.model.buckets().size(); ++bucket) {
    take(bucket, wait_for(bucket));
  }
  close();
  // Buckets follow rank 0's order, and if rank 0 has joined, it has none yet.
  if (state_.model.follows_arrival() && !state_.agreed && rounds_.opening().takes_part(0))
    follow_arrival();
}

// Ranks that have added up different numbers of passes are at different places in their loops: an
// error. With Average::samples it is allowed, since each rank says how many samples its gradients
// stand for.
void RoundsDriver::open() {
  OpeningWords mine;
  bool background = false;
  {
    const Lock lock(state_.mutex);
    mine = state_.iteration.take_opening();
    background = state_.iteration.has_joined() ||
                 (state_.model.options().overlap && !state_.iteration.is_finishing());
  }
  rounds_.open(mine, background);
  if (state_.model.options().average == Average::samples) return;
  const Complaint different = rounds_.opening().different_passes();  // the same on all ranks
  const Lock lock(state_.mutex);
  if (different) state_.iteration.note(different);
}

// Waits until the bucket may be reduced. Returns the time at which its last gradient came.
Clock::time_point RoundsDriver::wait_for(std::size_t bucket) {
  Lock lock(state_.mutex);
  state_.wake.wait(lock, [this] { return state_.stop || state_.iteration.may_go(); });
  if (!state_.iteration.may_go()) throw Error(kReducerDestroyed);
  if (!state_.iteration.ledger().complete(bucket)) {
    for (const std::size_t parameter :
         state_.iteration.missing_in(state_.model.buckets()[bucket])) {
      state_.model.store().clear(parameter);
      state_.iteration.note(state_.iteration.complaint_about_missing(parameter));
    }
    state_.recorder.fill(bucket, Clock::now());
  }
  state_.iteration.advance();
  return state_.recorder.filled(bucket);
}

void RoundsDriver::take(std::size_t bucket, Clock::time_point filled) {
  BucketRound round = rounds_.take(bucket);
  round.filled = filled;
  state_.recorder.round(bucket, round);
  if (!state_.recorder.traces()) return;
  std::string what = fmt::format("bucket {}:", bucket);
  for (const Member& member : state_.model.buckets()[bucket].members) {
    what += " " + state_.model.parameters()[member.parameter].name;
  }
  state_.recorder.trace(what, round);
}

void RoundsDriver::call_or_hook(std::size_t bucket, Call call) {
  const GradientOptions& options = state_.model.options();
  if (options.hook) {
    options.hook(state_.communicator, {bucket, call.out, call.count, call.type});
    return;
  }
  {
    const Lock lock(state_.mutex);
    call.options.background = options.overlap && !state_.iteration.is_finishing();
  }
  state_.communicator.run(call);
}

void RoundsDriver::close() {
  Complaint mine;
  {
    Lock lock(state_.mutex);
    state_.wake.wait(lock, [this] { return state_.stop || state_.iteration.is_finishing(); });
    if (!state_.iteration.is_finishing()) throw Error(kReducerDestroyed);
    mine = state_.iteration.take_noted();
  }
  const Complaint told = rounds_.close(mine);
  const Lock lock(state_.mutex);
  state_.agreed = told;
}

// Nothing is marked meanwhile: finish() has begun.
void RoundsDriver::follow_arrival() {
  const WithinFunction iteration(PartOf::iteration, state_.model.options().timeout);
  auto buckets = rounds_.follow_arrival(state_.iteration.ledger().arrival());
  if (!buckets) return;
  const Lock lock(state_.mutex);
  state_.model.form_anew(std::move(*buckets));
  state_.iteration.set_buckets(state_.model.buckets());
  state_.reordered = true;
}

}  // namespace rondo::detail

// The side of the thread that drives the rounds: the reducer's, or that of finish() where there is no overlap.
#include <utility>

#include <fmt/format.h>

#include "communicator/within_function.hpp"
#include "gradient/host_reducer.hpp"

namespace rondo::detail {

void HostReducer::serve() {
  Lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || (iteration_.is_open() && !done_); });
    if (stop_) return;
    lock.unlock();
    run_iteration();
    lock.lock();
  }
}

void HostReducer::run_iteration() {
  std::exception_ptr error;
  try {
    communicate();
  } catch (const std::exception& reason) {
    error = std::current_exception();
    abort(reason.what());
  } catch (...) {
    error = std::current_exception();
    abort("an exception of no standard type");
  }
  const Lock lock(mutex_);
  // Calls of the program are to say why the communicator has ended; finish() may never be called.
  if (error) give_back_communicator();
  failure_ = error;
  done_ = true;
  returned_.notify_all();
}

void HostReducer::communicate() {
  open();
  if (rounds_.opening().all_have_joined()) {
    const WithinFunction iteration(PartOf::iteration, model_.options().timeout);
    rounds_.take_last_values();
    return;
  }
  for (std::size_t bucket = 0; bucket < model_.buckets().size(); ++bucket) {
    take(bucket, wait_for(bucket));
  }
  close();
  // Buckets follow rank 0's order, and if rank 0 has joined, it has none yet.
  if (model_.follows_arrival() && !agreed_ && rounds_.opening().takes_part(0)) follow_arrival();
}

// Ranks that have added up different numbers of passes are at different places in their loops: an error. With
// Average::samples it is allowed, since each rank says how many samples its gradients stand for.
void HostReducer::open() {
  OpeningWords mine;
  bool background = false;
  {
    const Lock lock(mutex_);
    mine = iteration_.take_opening();
    background =
        iteration_.has_joined() || (model_.options().overlap && !iteration_.is_finishing());
  }
  rounds_.open(mine, background);
  if (model_.options().average == Average::samples) return;
  const Complaint different = rounds_.opening().different_passes();  // the same on all ranks
  const Lock lock(mutex_);
  if (different) iteration_.note(different);
}

// Waits until the bucket may be reduced. Returns the time at which its last gradient came.
Clock::time_point HostReducer::wait_for(std::size_t bucket) {
  Lock lock(mutex_);
  wake_.wait(lock, [this] { return stop_ || iteration_.may_go(); });
  if (!iteration_.may_go()) throw Error(kReducerDestroyed);
  if (!iteration_.ledger().complete(bucket)) {
    for (const std::size_t parameter : iteration_.missing_in(model_.buckets()[bucket])) {
      model_.store().clear(parameter);
      iteration_.note(iteration_.complaint_about_missing(parameter));
    }
    recorder_.fill(bucket, Clock::now());
  }
  iteration_.advance();
  return recorder_.filled(bucket);
}

void HostReducer::take(std::size_t bucket, Clock::time_point filled) {
  BucketRound round = rounds_.take(bucket);
  round.filled = filled;
  recorder_.round(bucket, round);
  if (!recorder_.traces()) return;
  std::string what = fmt::format("bucket {}:", bucket);
  for (const Member& member : model_.buckets()[bucket].members) {
    what += " " + model_.parameters()[member.parameter].name;
  }
  recorder_.trace(what, round);
}

void HostReducer::call_or_hook(std::size_t bucket, Call call) {
  const GradientOptions& options = model_.options();
  if (options.hook) {
    options.hook(communicator_, {bucket, call.out, call.count, call.type});
    return;
  }
  {
    const Lock lock(mutex_);
    call.options.background = options.overlap && !iteration_.is_finishing();
  }
  communicator_.run(call);
}

void HostReducer::close() {
  Complaint mine;
  {
    Lock lock(mutex_);
    wake_.wait(lock, [this] { return stop_ || iteration_.is_finishing(); });
    if (!iteration_.is_finishing()) throw Error(kReducerDestroyed);
    mine = iteration_.take_noted();
  }
  const Complaint told = rounds_.close(mine);
  const Lock lock(mutex_);
  agreed_ = told;
}

// Nothing is marked meanwhile: finish() has begun.
void HostReducer::follow_arrival() {
  const WithinFunction iteration(PartOf::iteration, model_.options().timeout);
  auto buckets = rounds_.follow_arrival(iteration_.ledger().arrival());
  if (!buckets) return;
  const Lock lock(mutex_);
  model_.form_anew(std::move(*buckets));
  iteration_.follow(model_.buckets());
  reordered_ = true;
}

}  // namespace rondo::detail

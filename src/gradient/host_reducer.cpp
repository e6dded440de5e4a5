#include "gradient/host_reducer.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <rondo/topology.hpp>

#include "communicator/state.hpp"
#include "gradient/agreement.hpp"
#include "gradient/bucket_size.hpp"

namespace rondo::detail {
namespace {

// The word of a rank in an opening.
constexpr std::uint64_t kJoined = 1;
constexpr std::uint64_t word_with(std::uint64_t samples) { return samples + 2; }
constexpr std::uint64_t samples_in(std::uint64_t word) { return word == kJoined ? 0 : word - 2; }
constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 60U;

}  // namespace

HostReducer::HostReducer(Communicator& communicator, std::vector<Parameter> parameters,
                         GradientOptions options)
    : communicator_(communicator),
      parameters_(std::move(parameters)),
      options_(std::move(options)),
      store_(parameters_, options_.wire, host_memory()),
      ledger_(parameters_.size()),
      words_(2 * static_cast<std::size_t>(communicator.size())),
      words_before_(words_.size()) {
  std::string objection = objection_to(parameters_, options_);
  if (!objection.empty()) {
    objection = fmt::format("rank {}: GradientReducer: {}", communicator_.rank(), objection);
  }
  require_equal_lines(
      communicator_, objection,
      objection.empty() ? lines_of(parameters_, options_) : std::vector<std::string>());
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
  take_values(communicator_, parameters_, 0, options_.timeout);
  for (const Parameter& parameter : parameters_) {
    shapes_.push_back({parameter.count, parameter.type});
  }
  building_.arrival.reserve(shapes_.size());
  finished_.arrival.reserve(shapes_.size());
  ordered_ = !options_.order_by_arrival;
  limits_ = limits_for(options_, shapes_, communicator_,
                       [this](std::size_t bytes) { return call_us(communicator_, bytes); });
  form_buckets(reverse_order(shapes_.size()));
  check_algorithm();
  progress_place_ = "the caller's thread";
  if (options_.overlap) start_thread();
}

void HostReducer::form_buckets(const std::vector<std::uint32_t>& order) {
  store_.lay_out(plan_buckets(shapes_, order, limits_));
  ledger_.follow(store_.buckets());
  building_.buckets.resize(store_.buckets().size());
  finished_.buckets.resize(store_.buckets().size());
}

// Refuses an algorithm that cannot be, now and not in finish(); on all ranks alike. Where buckets may be formed
// anew, in any order, the largest that the cap allows counts.
void HostReducer::check_algorithm() const {
  for (std::size_t bucket = 0; bucket < store_.buckets().size(); ++bucket) {
    Call call = call_of(bucket);
    if (!options_.layout_independent && !ordered_) {
      call.count = largest_bucket_elems(shapes_, store_.buckets()[bucket].type, limits_);
    }
    require_algorithm(call, [&](const Call& its) { return communicator_.algorithm_for(its); });
  }
}

// A thread that cannot be bound, or may not use MPI, is an error of all ranks, before it has made any call.
void HostReducer::start_thread() {
  std::string objection;
  bool up = false;
  thread_ = std::thread([&, this] {
    std::string mine;
    try {
      progress_place_ = bind_beside_compute(communicator_.topology(), communicator_.rank(),
                                            options_.progress_core);
      mine = objection_to_calls_here(communicator_);
      if (!mine.empty()) {
        mine = fmt::format(
            "rank {}: GradientOptions::overlap has a thread of its own make the calls: {}; or set "
            "overlap = false",
            communicator_.rank(), mine);
      }
    } catch (const std::exception& error) {
      mine = error.what();
    }
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
    if (open_ && !done_) {
      reason =
          own_ ? text_of(own_)
               : fmt::format(
                     "rank {}: the gradient reducer was destroyed in the middle of an iteration",
                     communicator_.rank());
    }
  }
  // Before the thread stops, whose own reason would be less precise: the first one stays.
  if (!reason.empty()) communicator_.abort(reason);
  stop_thread();
}

// The caller's side.

void HostReducer::throw_if_failed() const {
  if (failure_) std::rethrow_exception(failure_);
}

double HostReducer::us_since_first_mark(Clock::time_point now) const {
  return std::chrono::duration<double, std::micro>(now - first_mark_).count();
}

void HostReducer::begin(Clock::time_point now) {
  open_ = true;
  finishing_ = done_ = false;
  agreed_ = {};
  next_ = 0;
  first_mark_ = now;
  ledger_.begin();
  wake_.notify_one();
  if (options_.average == Average::samples && !samples_ && !shadow_) complain(Wrong::samples, 0);
}

// The first is told; of parameters that are missing, how many more there are too.
void HostReducer::note(const Complaint& complaint) {
  if (!own_) {
    own_ = complaint;
  } else if (own_.what == Wrong::unmarked && complaint.what == Wrong::unmarked && own_.more < 255) {
    ++own_.more;
  }
}

void HostReducer::complain(Wrong what, std::size_t parameter) {
  const Complaint complaint{what, communicator_.rank(), static_cast<std::uint32_t>(parameter), 0};
  note(complaint);
  throw UsageError(text_of(complaint));
}

bool HostReducer::takes_part(std::size_t rank) const { return words_[rank] != kJoined; }

std::string HostReducer::text_of(const Complaint& complaint) const {
  if (complaint.what == Wrong::passes) {
    const auto one = static_cast<std::size_t>(complaint.rank);
    std::size_t other = 0;
    while (!takes_part(other)) ++other;
    return fmt::format(
        "rank {}: finish: it made {} passes under no_sync since the iteration before, and rank {} "
        "made {}. Make as many on all ranks, or say how many samples each rank's gradients stand "
        "for (Average::samples)",
        one, words_[ranks() + one], other, words_[ranks() + other]);
  }
  const bool named = complaint.what != Wrong::unknown;
  return detail::text_of(complaint, named ? parameters_[complaint.parameter].name : "");
}

void HostReducer::mark_ready(std::size_t parameter) {
  Lock lock(mutex_);
  throw_if_failed();
  const bool known = parameter < parameters_.size();
  if (known && paused_ > 0) {
    passing_ = true;
    return;
  }
  const Clock::time_point now = Clock::now();
  if (!open_ && paused_ == 0) begin(now);
  if (!known) complain(Wrong::unknown, parameter);
  if (finishing_) complain(Wrong::late, parameter);
  if (!ledger_.mark(parameter)) complain(Wrong::twice, parameter);
  if (options_.trace) {
    computed_.push_back({Row::compute, parameters_[parameter].name,
                         last_mark_ == Clock::time_point() ? now : last_mark_, now, iterations_ + 1,
                         0});
    last_mark_ = now;
  }
  const std::size_t bucket = ledger_.bucket_of(parameter);
  if (!ledger_.complete(bucket)) return;
  building_.buckets[bucket].ready_us = us_since_first_mark(now);
  if (bucket != next_) return;
  lock.unlock();  // so that who wakes need not wait for it
  wake_.notify_one();
}

void HostReducer::mark_ready(std::size_t parameter, const void* gradient, std::size_t count,
                             DataType type) {
  if (parameter < parameters_.size()) {
    const Lock lock(mutex_);
    throw_if_failed();
    Wrong wrong = Wrong::nothing;
    if (count != parameters_[parameter].count) wrong = Wrong::count;
    if (gradient != store_.gradient(parameter) || type != parameters_[parameter].type) {
      wrong = Wrong::pointer;
    }
    if (wrong != Wrong::nothing) {
      if (!open_ && paused_ == 0) begin(Clock::now());
      complain(wrong, parameter);
    }
  }
  mark_ready(parameter);
}

void HostReducer::set_samples(std::uint64_t samples) {
  const Lock lock(mutex_);
  throw_if_failed();
  if (open_) {
    throw UsageError(
        fmt::format("rank {}: set_samples in the middle of an iteration; call it before "
                    "the first mark",
                    communicator_.rank()));
  }
  if (samples > kMostSamples) {
    throw UsageError(fmt::format("rank {}: set_samples: {} samples are more than 2^60",
                                 communicator_.rank(), samples));
  }
  samples_ = samples;
}

void HostReducer::run_and_wait(Lock& lock) {
  finishing_ = true;
  if (options_.overlap) {
    wake_.notify_one();
    returned_.wait(lock, [this] { return done_; });
  } else {
    lock.unlock();
    run_iteration();
    lock.lock();
  }
}

void HostReducer::end_iteration(Clock::time_point blocked_since) {
  const Clock::time_point now = Clock::now();
  open_ = false;
  samples_.reset();
  last_mark_ = now;
  throw_if_failed();
  if (all_joined_) return;
  building_.iteration = ++iterations_;
  building_.arrival.assign(ledger_.arrival().begin(), ledger_.arrival().end());
  building_.compute_us = us_since_first_mark(blocked_since);
  building_.exposed_us = std::chrono::duration<double, std::micro>(now - blocked_since).count();
  building_.bytes = 0;
  building_.transfer_us = 0;
  for (const BucketStatistics& bucket : building_.buckets) {
    building_.bytes += bucket.bytes;
    building_.transfer_us += bucket.end_us - bucket.start_us;
  }
  building_.hidden_fraction =
      building_.transfer_us > 0 ? 1 - building_.exposed_us / building_.transfer_us : 0;
  std::swap(building_, finished_);
  building_.reordered = false;
  building_.buckets.assign(store_.buckets().size(), {});
}

// Without a thread of its own, the caller's makes the calls: refused before anything has begun, if MPI's thread level
// forbids them here.
void HostReducer::refuse_wrong_thread(const char* what) const {
  if (options_.overlap) return;
  const std::string objection = objection_to_calls_here(communicator_);
  if (objection.empty()) return;
  throw UsageError(fmt::format("rank {}: {}: {}", communicator_.rank(), what, objection));
}

void HostReducer::finish() {
  Lock lock(mutex_);
  throw_if_failed();
  if (paused_ > 0) {
    ++passes_;
    passing_ = false;
    return;
  }
  refuse_wrong_thread("finish");
  const Clock::time_point now = Clock::now();
  if (!open_) {
    try {
      begin(now);
    } catch (const UsageError&) {
      // Noted; all ranks are told at the end.
    }
  }
  run_and_wait(lock);
  end_iteration(now);
  if (agreed_) throw UsageError(text_of(agreed_));
}

void HostReducer::pause() {
  const Lock lock(mutex_);
  throw_if_failed();
  if (open_) {
    throw UsageError(fmt::format(
        "rank {}: no_sync in the middle of an iteration; finish() it first", communicator_.rank()));
  }
  ++paused_;
}

void HostReducer::go_on() noexcept {
  const Lock lock(mutex_);
  if (--paused_ > 0) return;
  if (passing_) ++passes_;
  passing_ = false;
}

void HostReducer::join(const std::function<void()>& after_iteration) {
  for (;;) {
    Lock lock(mutex_);
    throw_if_failed();
    if (open_) {
      throw UsageError(fmt::format("rank {}: join in the middle of an iteration; finish() it first",
                                   communicator_.rank()));
    }
    refuse_wrong_thread("join");
    shadow_ = true;
    const Clock::time_point now = Clock::now();
    begin(now);
    run_and_wait(lock);
    shadow_ = false;
    end_iteration(now);
    if (all_joined_) return;
    const bool went_wrong = static_cast<bool>(agreed_);
    lock.unlock();
    // Those whose iteration it was have been told.
    if (after_iteration && !went_wrong) after_iteration();
  }
}

void HostReducer::record_compute(std::string_view what, Clock::time_point begin,
                                 Clock::time_point end) {
  if (!options_.trace) return;
  const Lock lock(mutex_);
  computed_.push_back({Row::compute, std::string(what), begin, end, iterations_ + 1, 0});
  last_mark_ = std::max(last_mark_, end);
}

void HostReducer::write_trace(const std::string& file) {
  {
    const Lock lock(mutex_);
    throw_if_failed();
    if (open_) {
      throw UsageError(
          fmt::format("rank {}: write_trace in the middle of an iteration", communicator_.rank()));
    }
  }
  require_equal_lines(communicator_,
                      options_.trace
                          ? std::string()
                          : fmt::format("rank {}: write_trace: GradientOptions::trace is "
                                        "not set, so there is no timeline",
                                        communicator_.rank()),
                      {});
  std::vector<Stretch> all = computed_;
  all.insert(all.end(), travelled_.begin(), travelled_.end());
  write_timelines(communicator_, all, file);
}

// The side of whoever takes buckets round.

void HostReducer::serve() {
  Lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || (open_ && !done_); });
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
  failure_ = error;
  done_ = true;
  returned_.notify_all();
}

// The other ranks would wait for this one. Where the communicator has ended already, its first reason stays.
void HostReducer::abort(const char* reason) {
  communicator_.abort(
      fmt::format("rank {}: the gradient reducer failed: {}", communicator_.rank(), reason));
}

void HostReducer::communicate() {
  if (all_have_joined()) {
    end_of_join();
    return;
  }
  for (std::size_t bucket = 0; bucket < store_.buckets().size(); ++bucket) {
    await(bucket);
    take_round(bucket);
  }
  close();
  // Rank 0's order: where it has joined, there is none yet.
  if (!ordered_ && !agreed_ && words_[0] != kJoined) follow_arrival();
}

Call HostReducer::all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) const {
  Call call;
  call.collective = Collective::all_reduce;
  call.in = call.out = data;
  call.count = count;
  call.type = type;
  call.op = op;
  call.options.timeout = options_.timeout;
  return call;
}

Call HostReducer::call_of(std::size_t bucket) const {
  const GradientStore::Load& load = store_.load(bucket);
  Call call = all_reduce(load.data, load.count, load.type, averaging_.op);
  call.options.algorithm = options_.layout_independent ? Algorithm::ring : options_.algorithm;
  return call;
}

bool HostReducer::all_have_joined() {
  std::swap(words_, words_before_);
  std::fill(words_.begin(), words_.end(), 0);
  const auto mine = static_cast<std::size_t>(communicator_.rank());
  Call call = all_reduce(words_.data(), words_.size(), DataType::u64, ReduceOp::max);
  {
    const Lock lock(mutex_);
    const std::uint64_t samples = options_.average == Average::samples ? samples_.value_or(0) : 1;
    words_[mine] = shadow_ ? kJoined : word_with(samples);
    words_[ranks() + mine] = passes_;
    passes_ = 0;
    call.options.background = shadow_ || (options_.overlap && !finishing_);
  }
  communicator_.run(call);
  TakingPart who{ranks(), 0, 0, samples_in(words_[mine])};
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    who.live += takes_part(rank) ? 1 : 0;
    who.samples += samples_in(words_[rank]);
  }
  all_joined_ = who.live == 0;
  averaging_ = averaging_for(options_, who);
  if (!all_joined_ && options_.average != Average::samples) compare_passes();
  return all_joined_;
}

// Ranks that have added up different numbers of passes are in different places of their loops. With
// Average::samples they may be: each says what its gradients stand for.
void HostReducer::compare_passes() {
  std::size_t first = 0;
  while (!takes_part(first)) ++first;
  for (std::size_t rank = first; rank < ranks(); ++rank) {
    if (!takes_part(rank) || words_[ranks() + rank] == words_[ranks() + first]) continue;
    const Lock lock(mutex_);
    note({Wrong::passes, static_cast<int>(rank), 0, 0});  // all ranks find the same
    return;
  }
}

void HostReducer::await(std::size_t bucket) {
  Lock lock(mutex_);
  next_ = bucket;
  wake_.wait(lock, [&] { return stop_ || finishing_ || ledger_.complete(bucket); });
  if (!finishing_ && !ledger_.complete(bucket)) {
    throw Error("the gradient reducer was destroyed in the middle of an iteration");
  }
  if (ledger_.complete(bucket)) return;
  for (const Member& member : store_.buckets()[bucket].members) {
    if (ledger_.marked(member.parameter)) continue;
    store_.clear(member.parameter);
    if (shadow_ || options_.allow_unused) continue;
    note({Wrong::unmarked, communicator_.rank(), static_cast<std::uint32_t>(member.parameter), 0});
  }
  building_.buckets[bucket].ready_us = us_since_first_mark(Clock::now());
}

void HostReducer::take_round(std::size_t bucket) {
  const GradientStore::Load& load = store_.load(bucket);
  const Clock::time_point start = Clock::now();
  store_.pack(bucket, averaging_.factor);
  const Clock::time_point packed = Clock::now();
  send(bucket);
  const Clock::time_point arrived = Clock::now();
  store_.unpack(bucket);
  const Clock::time_point end = Clock::now();
  BucketStatistics& statistics = building_.buckets[bucket];
  statistics.bytes = load.count * size_of(load.type);
  statistics.start_us = us_since_first_mark(start);
  statistics.end_us = us_since_first_mark(end);
  if (!options_.trace) return;
  const auto ready =
      first_mark_ + std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double, std::micro>(statistics.ready_us));
  trace(Row::queue, bucket, std::min(ready, start), start);
  if (packed - start > std::chrono::microseconds(1)) trace(Row::reduce, bucket, start, packed);
  trace(Row::transfer, bucket, packed, arrived);
  if (end - arrived > std::chrono::microseconds(1)) trace(Row::reduce, bucket, arrived, end);
}

void HostReducer::send(std::size_t bucket) {
  const GradientStore::Load& load = store_.load(bucket);
  if (load.count == 0) return;
  if (!options_.hook) {
    Call call = call_of(bucket);
    {
      const Lock lock(mutex_);
      call.options.background = options_.overlap && !finishing_;
    }
    communicator_.run(call);
    return;
  }
  options_.hook(communicator_, {bucket, load.data, load.count, load.type});
}

void HostReducer::close() {
  std::uint64_t word = 0;
  {
    Lock lock(mutex_);
    wake_.wait(lock, [this] { return stop_ || finishing_; });
    if (!finishing_)
      throw Error("the gradient reducer was destroyed in the middle of an iteration");
    word = word_of(own_);
    own_ = {};  // what is noted from here on is told at the end of the next iteration
  }
  communicator_.run(all_reduce(&word, 1, DataType::u64, ReduceOp::max));
  const Lock lock(mutex_);
  agreed_ = complaint_in(word);
}

void HostReducer::follow_arrival() {
  std::vector<std::uint32_t> order = complete_order(ledger_.arrival(), parameters_.size());
  CallOptions options;
  options.timeout = options_.timeout;
  communicator_.broadcast(order, 0, options);
  ordered_ = true;
  if (same_buckets(plan_buckets(shapes_, order, limits_), store_.buckets())) return;
  const Lock lock(mutex_);
  const GradientStatistics of_old = building_;
  form_buckets(order);
  building_.buckets = of_old.buckets;
  building_.reordered = true;
  if (store_.owns_any()) ++layout_;
}

// Those who joined last have taken every step.
void HostReducer::end_of_join() {
  int root = 0;
  for (std::size_t rank = ranks(); rank-- > 0;) {
    if (words_before_[rank] > kJoined) root = static_cast<int>(rank);
  }
  std::fill(words_.begin(), words_.end(), 0);
  take_values(communicator_, parameters_, root, options_.timeout);
}

void HostReducer::trace(Row row, std::size_t bucket, Clock::time_point begin,
                        Clock::time_point end) {
  std::string what = fmt::format("bucket {}:", bucket);
  for (const Member& member : store_.buckets()[bucket].members) {
    what += " " + parameters_[member.parameter].name;
  }
  travelled_.push_back(
      {row, std::move(what), begin, end, iterations_ + 1, building_.buckets[bucket].bytes});
}

}  // namespace rondo::detail

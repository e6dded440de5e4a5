#include "gradient/device_reducer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "gradient/agreement.hpp"
#include "gradient/bucket_size.hpp"
#include "gradient/device_memory.hpp"
#include "group/handles.hpp"

namespace rondo::detail::gpu {
namespace {

// What of the options is not for devices; empty if nothing is.
std::string objection_on_devices(const GradientOptions& options) {
  if (options.hook) return "a hook is for host memory";
  if (options.trace) return "GradientOptions::trace is for host memory";
  if (!options.overlap) return "without overlap, make one all_reduce of a device's gradients";
  return {};
}

// A rank with a reducer has three streams: that of its calls, the reducer's, and the one that gradients come
// from. With fewer connections than streams some share a queue, and a call may stand behind one that waits for it.
std::string objection_to_streams(const Topology& topology, int rank) {
  constexpr int kStreamsOfARank = 3;
  const RankPlace& mine = topology.places[static_cast<std::size_t>(rank)];
  const auto here = static_cast<int>(
      std::count_if(topology.places.begin(), topology.places.end(), [&](const RankPlace& place) {
        return place.host == mine.host && place.process_id == mine.process_id &&
               place.device == mine.device;
      }));
  const int connections = environment_device_connections();
  if (here == 1 || here * kStreamsOfARank <= connections) return {};
  return fmt::format(
      "{} ranks of one process share {}, and with gradient reducers they have {} streams, more "
      "than "
      "CUDA's {} connections to a device; set the environment variable CUDA_DEVICE_MAX_CONNECTIONS "
      "to 32 before the program starts, or have fewer ranks there",
      here, mine.device, here * kStreamsOfARank, connections);
}

void end_for_all(cuda::Communicator& communicator, const std::exception& error) {
  communicator.abort(
      fmt::format("rank {}: GradientReducer: {}", communicator.rank(), error.what()));
}

}  // namespace

ReducerStream::ReducerStream(int device, std::size_t gradients) : device_(device) {
  const DeviceScope scope(device);
  stream_ = api::make_stream(true);
  finished_ = api::make_event(false);
  for (std::size_t i = 0; i < gradients; ++i) produced_.push_back(api::make_event(false));
  ahead_.emplace();
}

void ReducerStream::follow(api::Event event) {
  api::wait_for(event, stream_);
  ahead_->enqueued(1, stream_);
}

void ReducerStream::wait() noexcept {
  try {
    const DeviceScope scope(device_);
    api::wait_for(stream_);
  } catch (const CudaError&) {
    // The device has failed; the communicator's calls say so.
  }
}

ReducerStream::~ReducerStream() {
  wait();
  try {
    const DeviceScope scope(device_);
    ahead_.reset();
    for (const api::Event event : produced_) api::destroy(event);
    api::destroy(finished_);
    api::destroy(stream_);
  } catch (const CudaError&) {
    // Likewise.
  }
}

// The other ranks are about to compare their parameters with this one's: they are told where this rank has failed.
ReducerStream DeviceReducer::make_stream(cuda::Communicator& communicator, std::size_t gradients) {
  try {
    return ReducerStream(communicator.device(), gradients);
  } catch (const CudaError& error) {
    end_for_all(communicator, error);
    throw;
  }
}

DeviceReducer::DeviceReducer(cuda::Communicator& communicator, std::vector<Parameter> parameters,
                             GradientOptions options)
    : communicator_(communicator),
      parameters_(std::move(parameters)),
      options_(std::move(options)),
      stream_(make_stream(communicator, parameters_.size())),
      store_(parameters_, options_.wire,
             memory_on(communicator.device(), stream_.get(), stream_.ahead())),
      ledger_(parameters_.size()) {
  rondo::Communicator& host = communicator_.host();
  std::string objection = objection_to(parameters_, options_);
  if (objection.empty()) objection = objection_on_devices(options_);
  if (objection.empty()) {
    objection = objection_to_streams(communicator_.topology(), communicator_.rank());
  }
  if (!objection.empty()) {
    objection = fmt::format("rank {}: GradientReducer: {}", host.rank(), objection);
  }
  require_equal_lines(
      host, objection,
      objection.empty() ? lines_of(parameters_, options_) : std::vector<std::string>());
  try {
    set_up();
  } catch (const std::exception& error) {
    end_for_all(communicator_, error);
    throw;
  }
  check_algorithm();
}

void DeviceReducer::set_up() {
  const DeviceScope scope(communicator_.device());
  for (const Parameter& parameter : parameters_) {
    shapes_.push_back({parameter.count, parameter.type});
    if (parameter.value == nullptr || parameter.count == 0) continue;
    Call call = all_reduce(parameter.value, parameter.count, parameter.type, ReduceOp::sum);
    call.collective = Collective::broadcast;
    communicator_.enqueue(call, stream_.get());
  }
  communicator_.wait(stream_.get());
  // Allocating waits for what runs on the device: the last values of other ranks there may still be under way.
  communicator_.host().barrier();
  ordered_ = !options_.order_by_arrival;
  limits_ = limits_for(options_, shapes_, communicator_.host(),
                       [this](std::size_t bytes) { return call_us(bytes); });
  form_buckets(reverse_order(shapes_.size()));
  communicator_.wait(stream_.get());
  communicator_.host().barrier();
}

// Refuses an algorithm that cannot be, now and not in an iteration; on all ranks alike. Where buckets may be formed
// anew, in any order, the largest that the cap allows counts.
void DeviceReducer::check_algorithm() const {
  for (std::size_t bucket = 0; bucket < store_.buckets().size(); ++bucket) {
    Call call = call_of(bucket);
    if (!ordered_) call.count = largest_bucket_elems(shapes_, call.type, limits_);
    require_algorithm(call, [&](const Call& its) { return communicator_.algorithm_for(its); });
  }
}

DeviceReducer::~DeviceReducer() {
  if (open_) {
    communicator_.abort(
        fmt::format("rank {}: the gradient reducer was destroyed in the middle of an iteration",
                    communicator_.rank()));
  }
  stream_.wait();  // buckets go with the store
}

double DeviceReducer::call_us(std::size_t bytes) {
  constexpr int kRounds = 5;
  const DeviceScope scope(communicator_.device());
  std::array<double, 1> mean = {};
  {
    const DeviceMemory memory(communicator_.device(), bytes);
    const Call call =
        all_reduce(memory.data(), bytes / sizeof(float), DataType::f32, ReduceOp::sum);
    // Allocating waits for what runs on the device: no rank's call may be under way there yet.
    communicator_.host().barrier();
    communicator_.enqueue(call, stream_.get());
    communicator_.wait(stream_.get());
    const auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < kRounds; ++round) communicator_.enqueue(call, stream_.get());
    communicator_.wait(stream_.get());
    const auto end = std::chrono::steady_clock::now();
    mean[0] = std::chrono::duration<double, std::micro>(end - start).count() / kRounds;
  }
  communicator_.host().broadcast(mean, 0);
  communicator_.host().barrier();  // freeing memory waits for the calls of all ranks on the device
  return mean[0];
}

void DeviceReducer::form_buckets(const std::vector<std::uint32_t>& order) {
  store_.lay_out(plan_buckets(shapes_, order, limits_));
  ledger_.follow(store_.buckets());
}

Call DeviceReducer::all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) const {
  Call call;
  call.collective = Collective::all_reduce;
  call.in = call.out = data;
  call.count = count;
  call.type = type;
  call.op = op;
  call.options.timeout = options_.timeout;
  return call;
}

Call DeviceReducer::call_of(std::size_t bucket) const {
  const GradientStore::Load& load = store_.load(bucket);
  Call call = all_reduce(load.data, load.count, load.type, averaging_.op);
  call.options.algorithm = options_.layout_independent ? Algorithm::ring : options_.algorithm;
  return call;
}

void DeviceReducer::complain(Wrong what, std::size_t parameter) {
  const Complaint complaint{what, communicator_.rank(), static_cast<std::uint32_t>(parameter), 0};
  const bool named = parameter < parameters_.size();
  const std::string text = text_of(complaint, named ? parameters_[parameter].name : "");
  communicator_.abort(text);
  open_ = false;
  throw UsageError(text);
}

void DeviceReducer::begin(api::Stream stream) {
  if (options_.average == Average::samples && api::is_capturing(stream)) {
    throw UsageError(
        fmt::format("rank {}: an iteration with Average::samples cannot be captured: its graph "
                    "would keep the counts",
                    communicator_.rank()));
  }
  open_ = true;
  next_ = 0;
  ledger_.begin();
  settle_averaging();
}

void DeviceReducer::settle_averaging() {
  const auto ranks = static_cast<std::uint64_t>(communicator_.size());
  TakingPart who{ranks, ranks, 0, 0};
  if (options_.average == Average::samples) {
    if (!samples_) complain(Wrong::samples, 0);
    std::array<std::uint64_t, 1> all = {*samples_};
    CallOptions options;
    options.timeout = options_.timeout;
    communicator_.host().all_reduce(all, ReduceOp::sum, options);
    who.samples = all[0];
    who.own_samples = *samples_;
  }
  averaging_ = averaging_for(options_, who);
}

void DeviceReducer::set_samples(std::uint64_t samples) {
  const std::lock_guard lock(mutex_);
  communicator_.check();
  if (open_) {
    throw UsageError(
        fmt::format("rank {}: set_samples in the middle of an iteration; call it before "
                    "the first mark",
                    communicator_.rank()));
  }
  samples_ = samples;
}

template <class Function>
void DeviceReducer::or_end(Function&& function) {
  try {
    function();
  } catch (const CudaError& error) {
    end_for_all(communicator_, error);
    throw;
  }
}

void DeviceReducer::mark_ready(std::size_t parameter, api::Stream stream) {
  const std::lock_guard lock(mutex_);
  or_end([&] { mark(parameter, stream); });
}

void DeviceReducer::mark(std::size_t parameter, api::Stream stream) {
  communicator_.check();
  if (!open_) begin(stream);
  if (parameter >= parameters_.size()) complain(Wrong::unknown, parameter);
  if (!ledger_.mark(parameter)) complain(Wrong::twice, parameter);
  const DeviceScope scope(communicator_.device());
  api::record(stream_.produced(parameter), stream);
  take_complete_buckets();
}

void DeviceReducer::take_complete_buckets() {
  while (next_ < store_.buckets().size() && ledger_.complete(next_)) {
    take_round(next_);
    ++next_;
  }
}

void DeviceReducer::take_round(std::size_t bucket) {
  for (const Member& member : store_.buckets()[bucket].members) {
    if (ledger_.marked(member.parameter)) stream_.follow(stream_.produced(member.parameter));
  }
  if (store_.load(bucket).count == 0) return;
  store_.pack(bucket, averaging_.factor);
  communicator_.enqueue(call_of(bucket), stream_.get());
  store_.unpack(bucket);
}

void DeviceReducer::finish(api::Stream stream) {
  const std::lock_guard lock(mutex_);
  or_end([&] { close(stream); });
}

void DeviceReducer::close(api::Stream stream) {
  communicator_.check();
  if (!open_) begin(stream);
  const DeviceScope scope(communicator_.device());
  if (next_ < store_.buckets().size()) {
    // What is not marked may still be read or written by what is on the stream.
    api::record(stream_.finished(), stream);
    stream_.follow(stream_.finished());
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (ledger_.marked(i)) continue;
      if (!options_.allow_unused) complain(Wrong::unmarked, i);
      store_.clear(i);
    }
    for (; next_ < store_.buckets().size(); ++next_) take_round(next_);
  }
  account();
  // A capture can neither wait nor allocate, and its graph holds on to the buckets as they are.
  if (api::is_capturing(stream)) ordered_ = true;
  if (!ordered_) follow_arrival();
  api::record(stream_.finished(), stream_.get());
  api::wait_for(stream_.finished(), stream);
  open_ = false;
  samples_.reset();
}

void DeviceReducer::account() {
  finished_.iteration = ++iterations_;
  finished_.arrival.assign(ledger_.arrival().begin(), ledger_.arrival().end());
  finished_.buckets.resize(store_.buckets().size());
  finished_.bytes = 0;
  for (std::size_t b = 0; b < store_.buckets().size(); ++b) {
    finished_.buckets[b].bytes = store_.load(b).count * size_of(store_.load(b).type);
    finished_.bytes += finished_.buckets[b].bytes;
  }
  finished_.reordered = false;
}

void DeviceReducer::follow_arrival() {
  std::vector<std::uint32_t> order = complete_order(ledger_.arrival(), parameters_.size());
  CallOptions options;
  options.timeout = options_.timeout;
  communicator_.host().broadcast(order, 0, options);
  ordered_ = true;
  if (same_buckets(plan_buckets(shapes_, order, limits_), store_.buckets())) return;
  communicator_.wait(stream_.get());  // the old buckets' memory goes
  form_buckets(order);
  communicator_.wait(stream_.get());
  communicator_.host().barrier(
      options);  // freeing memory waits for the calls of all ranks on the device
  finished_.reordered = true;
  if (store_.owns_any()) ++layout_;
}

}  // namespace rondo::detail::gpu

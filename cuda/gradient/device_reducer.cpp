#include "cuda/gradient/device_reducer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/index.hpp"
#include "communicator/within_function.hpp"
#include "cuda/api/enqueue_turn.hpp"
#include "cuda/communicator/share.hpp"
#include "cuda/gradient/stream_memory.hpp"
#include "gradient/agreement.hpp"
#include "gradient/bucket_size.hpp"

namespace rondo::detail::gpu {
namespace {

// Returns which of the options cannot be used on devices; empty if all can.
std::string objection_on_devices(const GradientOptions& options) {
  if (options.hook) return "a hook is for host memory";
  if (options.trace) return "GradientOptions::trace is for host memory";
  if (!options.overlap) return "without overlap, make one all_reduce of a device's gradients";
  return {};
}

// A rank with a reducer has three streams: one for its calls, the reducer's, and one that produces
// the gradients. With fewer connections than streams, some share a queue, and a call may be queued
// behind a call that waits for it.
std::string objection_to_streams(const Topology& topology, int rank) {
  constexpr int kStreamsOfARank = 3;
  const RankPlace& mine = topology.places[Index(rank)];
  const auto here = static_cast<int>(
      std::count_if(topology.places.begin(), topology.places.end(), [&](const RankPlace& place) {
        return on_one_host(place, mine) && place.process_id == mine.process_id &&
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

ReducerStream::ReducerStream(int device, std::size_t gradients)
    : device_(device),
      stream_(make_urgent_stream(device)),
      finished_(make_event(device)),
      ahead_(device) {
  for (std::size_t i = 0; i < gradients; ++i) produced_.push_back(make_event(device));
}

void ReducerStream::follow(api::Event event) {
  {
    const auto turn = turn_to_enqueue(device_);
    api::wait_for(event, stream_.get());
  }
  ahead_.enqueued(1, stream_.get());
}

void ReducerStream::record_on(api::Stream stream, api::Event event) const {
  const auto turn = turn_to_enqueue(device_);
  api::record(event, stream);
}

void ReducerStream::let_follow(api::Stream stream, api::Event event) const {
  const auto turn = turn_to_enqueue(device_);
  api::record(event, stream_.get());
  api::wait_for(event, stream);
}

void ReducerStream::wait() noexcept {
  try {
    const DeviceScope scope(device_);
    api::wait_for(stream_.get());
  } catch (const CudaError&) {
    // The device has failed; the communicator's calls say so.
  }
}

// Ends the communicator if it fails: the other ranks are about to compare their parameters with
// this rank's.
ReducerStream DeviceReducer::make_stream(cuda::Communicator& communicator, std::size_t gradients) {
  try {
    return ReducerStream(communicator.device(), gradients);
  } catch (const CudaError& error) {
    end_for_all(communicator, error);
    throw;
  }
}

DeviceReducer::DeviceReducer(cuda::Communicator& program, std::vector<Parameter> parameters,
                             GradientOptions options)
    : communicator_(share(program, this)),
      stream_(make_stream(communicator_, parameters.size())),
      model_(std::move(parameters), std::move(options),
             device_memory(communicator_, stream_.get(), stream_.ahead())),
      iteration_(communicator_.rank(), model_.parameters(), model_.options()),
      rounds_(communicator_.host(), model_,
              [this](std::size_t /*bucket*/, const Call& call) {
                communicator_.enqueue(call, stream_.get());
              }),
      recorder_(false, model_.parameters().size()) {
  const WithinFunction making(PartOf::making_reducer, model_.options().timeout);
  std::string objection = objection_on_devices(model_.options());
  if (objection.empty()) {
    objection = objection_to_streams(communicator_.topology(), communicator_.rank());
  }
  try {
    const DeviceScope scope(communicator_.device());
    require_same_model(communicator_.host(), model_.parameters(), model_.options(),
                       std::move(objection), api::copy);
  } catch (const CudaError& error) {
    end_for_all(communicator_, error);  // of this rank alone: its parameters' values cannot be read
    throw;
  }
  try {
    set_up();
  } catch (const std::exception& error) {
    end_for_all(communicator_, error);
    throw;
  }
  model_.require_algorithm([this](const Call& call) { return communicator_.algorithm_for(call); });
}

void DeviceReducer::set_up() {
  const DeviceScope scope(communicator_.device());
  take_values(model_, 0, [this](const Call& call) { communicator_.enqueue(call, stream_.get()); });
  communicator_.wait(stream_.get());
  // Allocating waits for what runs on the device, where other ranks may still be receiving the last
  // values.
  communicator_.host().barrier();
  model_.form(limits_for(model_.options(), model_.shapes(), communicator_.host(),
                         [this](std::size_t bytes) { return call_us(bytes); }));
  iteration_.set_buckets(model_.buckets());
  communicator_.wait(stream_.get());
  communicator_.host().barrier();
}

DeviceReducer::~DeviceReducer() {
  if (iteration_.is_open()) {
    communicator_.abort(fmt::format("rank {}: {}", communicator_.rank(), kReducerDestroyed));
  }
  stream_.wait();  // before the model's memory is freed
  give_back();
}

double DeviceReducer::call_us(std::size_t bytes) {
  constexpr int kRounds = 5;
  const DeviceScope scope(communicator_.device());
  std::array<double, 1> mean = {};
  {
    const auto memory = communicator_.allocate<float>(bytes / sizeof(float));  // as buckets
    const Call call = model_.all_reduce(memory.data(), memory.size(), DataType::f32, ReduceOp::sum);
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

template <class Function>
void DeviceReducer::or_end(Function&& function) {
  try {
    function();
  } catch (const UsageError& error) {
    // Thrown before an iteration began, or by refuse(), it leaves none open.
    if (iteration_.is_open()) give_up(error);
    give_back();
    throw;
  } catch (const std::exception& error) {
    give_up(error);
    give_back();
    throw;
  }
  if (!iteration_.is_open()) give_back();
}

void DeviceReducer::give_back() { exclusive_use_of(communicator_).give_back(this); }

// If another error has ended the communicator, that reason is kept.
void DeviceReducer::give_up(const std::exception& error) {
  iteration_.end();
  end_for_all(communicator_, error);
}

// Hosts do not wait for each other here, so that only the end of the communicator can inform the
// other ranks.
void DeviceReducer::refuse(const Complaint& complaint) {
  if (!complaint) return;
  const std::string text = iteration_.text_of(complaint);
  communicator_.abort(text);
  iteration_.end();
  throw UsageError(text);
}

void DeviceReducer::set_samples(std::uint64_t samples) {
  const std::lock_guard lock(mutex_);
  communicator_.check();
  iteration_.set_samples(samples);
}

void DeviceReducer::mark_ready(std::size_t parameter, api::Stream stream) {
  const std::lock_guard lock(mutex_);
  or_end([&] { mark(parameter, stream); });
}

void DeviceReducer::finish(api::Stream stream) {
  const std::lock_guard lock(mutex_);
  or_end([&] { close(stream); });
}

void DeviceReducer::begin(api::Stream stream) {
  const bool counts_samples = model_.options().average == Average::samples;
  if (counts_samples && api::is_capturing(stream)) {
    throw UsageError(
        fmt::format("rank {}: an iteration with Average::samples cannot be captured: its graph "
                    "would keep the counts",
                    communicator_.rank()));
  }
  exclusive_use_of(communicator_).take(this, communicator_.rank());
  recorder_.begin({}, model_.buckets().size());
  refuse(iteration_.begin(false));
  if (counts_samples) {
    rounds_.open(iteration_.take_opening(), false);
  } else {
    rounds_.open_with_all();
  }
}

void DeviceReducer::mark(std::size_t parameter, api::Stream stream) {
  communicator_.check();
  if (!iteration_.is_open()) begin(stream);
  refuse(iteration_.mark(parameter, Wrong::nothing));
  const DeviceScope scope(communicator_.device());
  stream_.record_on(stream, stream_.produced(parameter));
  take_due_buckets();
}

void DeviceReducer::take_due_buckets() {
  const std::vector<Bucket>& buckets = model_.buckets();
  for (; iteration_.next() < buckets.size() && iteration_.may_go(); iteration_.advance()) {
    const std::size_t bucket = iteration_.next();
    for (const Member& member : buckets[bucket].members) {
      if (!iteration_.ledger().marked(member.parameter)) continue;
      stream_.follow(stream_.produced(member.parameter));
    }
    BucketRound without_times;
    without_times.bytes = rounds_.take(bucket).bytes;
    recorder_.round(bucket, without_times);
  }
}

// Waits for the caller's stream first: work on it may still read or write gradients that are not
// marked.
void DeviceReducer::clear_missing(api::Stream stream) {
  stream_.record_on(stream, stream_.finished());
  stream_.follow(stream_.finished());
  for (std::size_t parameter = 0; parameter < model_.parameters().size(); ++parameter) {
    if (iteration_.ledger().marked(parameter)) continue;
    refuse(iteration_.complaint_about_missing(parameter));
    model_.store().clear(parameter);
  }
}

void DeviceReducer::close(api::Stream stream) {
  communicator_.check();
  if (!iteration_.is_open()) begin(stream);
  const DeviceScope scope(communicator_.device());
  if (iteration_.next() < model_.buckets().size()) {
    clear_missing(stream);
    iteration_.finish();
    take_due_buckets();
  }
  end_iteration(api::is_capturing(stream));
  stream_.let_follow(stream, stream_.finished());
  iteration_.end();
}

void DeviceReducer::end_iteration(bool captured) {
  // During a capture nothing can wait or allocate, and the graph keeps using the present buckets.
  if (captured) model_.keep_order();
  const bool reordered = model_.follows_arrival() && follow_arrival();
  recorder_.end({{}, {}, iteration_.ledger().arrival(), reordered});
}

// Returns whether buckets were formed anew.
bool DeviceReducer::follow_arrival() {
  const WithinFunction iteration(PartOf::iteration, model_.options().timeout);
  auto buckets = rounds_.follow_arrival(iteration_.ledger().arrival());
  if (!buckets) return false;
  model_.form_anew(std::move(*buckets));
  iteration_.set_buckets(model_.buckets());
  communicator_.wait(stream_.get());
  static_cast<void>(communicator_.allocate<std::uint8_t>(0));  // gives the old buckets' memory back
  return true;
}

}  // namespace rondo::detail::gpu

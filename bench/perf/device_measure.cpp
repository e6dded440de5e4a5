#include "bench/perf/device_measure.hpp"

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "base/collective_traits.hpp"
#include "base/with_type.hpp"
#include "bench/perf/exact_data.hpp"
#include "cuda/api/api.hpp"
#include "cuda/api/enqueue_turn.hpp"
#include "cuda/api/handles.hpp"

namespace rondo::perf {
namespace {

namespace api = detail::gpu::api;

template <class T>
class DeviceBuffers {
 public:
  DeviceBuffers(cuda::Communicator& comm, const ExactData<T>& data, const Options& options)
      : data_(data), options_(options), count_(data.input().size()) {
    for (T*& buffer : buffers_) {
      if (options.registered) {
        buffer = registered_.emplace_back(comm.allocate<T>(count_)).data();
      } else {
        memory_.push_back(
            std::make_unique<detail::gpu::DeviceMemory>(comm.device(), count_ * sizeof(T) + 1));
        buffer = reinterpret_cast<T*>(memory_.back()->data());
      }
    }
    refill();
  }

  [[nodiscard]] T* in() const { return buffers_[0]; }
  [[nodiscard]] T* out() const { return buffers_[1]; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }
  Call call(bool in_place) { return data_.call(options_, in(), in_place ? in() : out()); }
  void refill() {
    if (count_ == 0) return;
    api::copy(in(), data_.input().data(), bytes());
    const std::vector<T> nothing(count_);
    api::copy(out(), nothing.data(), bytes());
  }
  [[nodiscard]] std::uint64_t wrong(bool in_place) const {
    std::vector<T> result(count_);
    if (count_ > 0) api::copy(result.data(), in_place ? in() : out(), bytes());
    return data_.wrong(result);
  }

 private:
  const ExactData<T>& data_;
  const Options& options_;
  std::size_t count_;
  std::vector<std::unique_ptr<detail::gpu::DeviceMemory>> memory_;
  std::vector<cuda::RegisteredMemory<T>> registered_;
  std::array<T*, 2> buffers_{};
};

// A stream, and events before and after the work that is timed.
class Stopwatch {
 public:
  Stopwatch()
      : stream_(api::make_stream(false)),
        start_(api::make_event(true)),
        stop_(api::make_event(true)) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    api::destroy(start_);
    api::destroy(stop_);
    api::destroy(stream_);
  }

  [[nodiscard]] api::Stream stream() const { return stream_; }
  double time_us(const std::function<void()>& what) {
    api::record(start_, stream_);
    what();
    api::record(stop_, stream_);
    api::wait_for(stop_);
    return api::microseconds_between(start_, stop_);
  }

 private:
  api::Stream stream_;
  api::Event start_;
  api::Event stop_;
};

// A graph holds many small calls, so that the graph's launch adds little to the time of each.
int calls_of_a_graph(std::size_t bytes) { return bytes < (1U << 20U) ? 20 : 2; }

class Replay {
 public:
  Replay(api::Stream stream, int calls, const std::function<void()>& enqueue) : stream_(stream) {
    api::begin_capture(stream);
    for (int i = 0; i < calls; ++i) enqueue();
    graph_ = api::end_capture(stream);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  ~Replay() { api::destroy(graph_); }
  void operator()() const {
    const auto turn = detail::gpu::turn_to_enqueue(api::current_device());
    api::launch(graph_, stream_);
  }

 private:
  api::Stream stream_;
  api::Graph graph_ = nullptr;
};

void enqueue(cuda::Communicator& comm, const std::vector<Call>& calls, api::Stream stream) {
  for (const Call& call : calls) comm.enqueue(call, stream);
}

// `call`: what this rank does in one call.
Timing time_replays(cuda::Communicator& comm, const Options& options, std::size_t bytes,
                    const std::vector<Call>& call) {
  Stopwatch watch;
  const int calls = calls_of_a_graph(bytes);
  const Replay replay(watch.stream(), calls, [&] { enqueue(comm, call, watch.stream()); });
  comm.host().barrier();  // no rank starts while another still captures its graph
  const auto once = [&] {
    comm.host().barrier();
    const double us = watch.time_us([&] { replay(); }) / calls;
    comm.check();
    return us;
  };
  double warm_us = 0;
  for (int i = 0; i < options.warmups; ++i) warm_us = once();
  std::vector<double> times(
      static_cast<std::size_t>(iterations_for(comm.host(), options, warm_us * calls)));
  for (double& time : times) time = once();
  return summarise(comm.host(), times, 0);
}

// One rank after the other, while the rest wait.
Timing time_copies(cuda::Communicator& comm, const Options& options, std::size_t bytes, void* to,
                   const void* from) {
  Stopwatch watch;
  std::vector<double> times(static_cast<std::size_t>(std::max(options.iterations, 20)));
  for (int rank = 0; rank < comm.size(); ++rank) {
    comm.host().barrier();
    if (rank != comm.rank()) continue;
    for (double& time : times) {
      time = watch.time_us([&] { api::copy_async(to, from, bytes, watch.stream()); });
    }
  }
  return summarise(comm.host(), times, 0);
}

bool has_algorithm(const cuda::Communicator& comm, const std::string& algo, const Call& call) {
  if (algo == "mpi") return false;
  if (algo == "pairwise" || detail::goes_pairwise(call.collective)) {
    return algo == "auto" || (algo == "pairwise" && detail::goes_pairwise(call.collective));
  }
  if (comm.size() == 1) return algo != "one_shot";
  if (algo == "direct") {
    Call direct = call;
    direct.options.algorithm = Algorithm::direct;
    try {
      return comm.algorithm_for(direct) == Algorithm::direct;
    } catch (const UsageError&) {  // the buffers of all ranks are alike, so no rank goes on alone
      return false;
    }
  }
  return algo != "one_shot" || comm.algorithm_for(call) == Algorithm::one_shot;
}

}  // namespace

std::optional<Row> measure_on_device(cuda::Communicator& comm, const Options& options,
                                     const std::string& algo, std::uint64_t count) {
  const detail::gpu::DeviceScope scope(comm.device());
  return detail::with_common_type(options.type, [&](auto tag) -> std::optional<Row> {
    using T = typename decltype(tag)::Type;
    const ExactData<T> data(comm.rank(), comm.size(), options, count);
    DeviceBuffers<T> buffers(comm, data, options);
    Row row{algo, {}, count, count * sizeof(T), {}, std::nullopt};
    if (algo == "copy") {
      row.out_of_place = time_copies(comm, options, buffers.bytes(), buffers.out(), buffers.in());
      return row;
    }
    for (const bool in_place : {false, true}) {
      if (in_place && never_in_place(options.op)) break;
      Call call = buffers.call(in_place);
      if (!has_algorithm(comm, algo, call)) return std::nullopt;
      if (algo != "auto") call.options.algorithm = algorithm_named(algo);
      row.used = name(comm.algorithm_for(call));
      const std::vector<Call> calls = calls_of_rank(call, comm.rank());
      Timing timing = time_replays(comm, options, buffers.bytes(), calls);
      if (options.op == Collective::send) timing = one_way(timing);
      buffers.refill();
      const Stopwatch watch;
      comm.host().barrier();  // no rank starts while another still allocates
      enqueue(comm, calls, watch.stream());
      comm.wait(watch.stream());
      std::vector<std::uint64_t> wrong = {buffers.wrong(in_place)};
      comm.host().all_reduce(wrong);
      timing.wrong = wrong[0];
      (in_place ? row.in_place.emplace() : row.out_of_place) = timing;
    }
    return row;
  });
}

}  // namespace rondo::perf

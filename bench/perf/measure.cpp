#include "bench/perf/measure.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/with_type.hpp"
#include "bench/perf/exact_data.hpp"

namespace rondo::perf {
namespace {

using Clock = std::chrono::steady_clock;

double since_us(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

template <class T>
class HostBuffers {
 public:
  HostBuffers(const ExactData<T>& data, const Options& options)
      : data_(data), options_(options), in_(data.input()), out_(in_.size()) {}

  Call call(bool in_place) {
    return data_.call(options_, in_.data(), in_place ? in_.data() : out_.data());
  }
  // Before a call whose result is to be checked.
  void refill() {
    in_ = data_.input();
    std::fill(out_.begin(), out_.end(), T{});
  }
  [[nodiscard]] std::uint64_t wrong(bool in_place) const {
    return data_.wrong(in_place ? in_ : out_);
  }

 private:
  const ExactData<T>& data_;
  const Options& options_;
  std::vector<T> in_;
  std::vector<T> out_;
};

bool has_algorithm(Communicator& comm, const std::string& algo, Call call) {
  if (algo == "auto") return true;
  try {
    call.options.algorithm = algorithm_named(algo);
    return comm.algorithm_for(call) == call.options.algorithm;
  } catch (const UsageError&) {
    return false;
  }
}

// Runs until connections are made and the scheduler has settled: rounds of options.warmups runs, then twice as many
// each time, until a round takes 20 ms. Returns the microseconds of one run in the last round, the same on all ranks.
double warm_up(Communicator& comm, const Options& options, const std::function<void()>& run) {
  constexpr double kLeastUs = 20e3;
  for (int runs = options.warmups;; runs *= 2) {
    const auto start = Clock::now();
    for (int i = 0; i < runs; ++i) run();
    std::array<double, 1> slowest = {since_us(start)};
    comm.all_reduce(slowest, ReduceOp::max);
    if (slowest[0] >= kLeastUs) return slowest[0] / static_cast<double>(runs);
  }
}

Timing time_runs(Communicator& comm, const Options& options, const std::function<void()>& run,
                 const std::function<std::uint64_t()>& wrong) {
  const int iterations = iterations_for(comm, options, warm_up(comm, options, run));
  std::vector<double> times(static_cast<std::size_t>(iterations));
  comm.barrier();
  for (double& time : times) {
    const auto start = Clock::now();
    run();
    time = since_us(start);
  }
  return summarise(comm, times, wrong());
}

// All ranks copy the vector at the same time: the fastest that memory allows.
Timing time_copies(Communicator& comm, const Options& options, const Call& call,
                   std::uint64_t bytes) {
  const auto copy = [&] {
    comm.barrier();
    std::memcpy(call.out, call.in, bytes);
  };
  return time_runs(comm, options, copy, [] { return std::uint64_t{0}; });
}

template <class T>
Timing time_one(Communicator& comm, const Options& options, HostBuffers<T>& buffers, bool in_place,
                const std::function<void()>& run) {
  return time_runs(comm, options, run, [&] {
    // Checks the last timed call; not in place, where each call has reduced the last one's result again.
    const std::uint64_t before = in_place ? 0 : buffers.wrong(false);
    buffers.refill();
    run();
    return before + buffers.wrong(in_place);
  });
}

}  // namespace

int iterations_for(Communicator& comm, const Options& options, double one_us) {
  if (options.iterations > 0) return options.iterations;
  std::array<double, 1> slowest = {one_us};
  comm.all_reduce(slowest, ReduceOp::max);
  constexpr double kBudgetUs = 300e3;
  return static_cast<int>(std::clamp(kBudgetUs / std::max(slowest[0], 0.1), 10.0, 20000.0));
}

Timing summarise(Communicator& comm, std::vector<double>& times, std::uint64_t wrong) {
  comm.all_reduce(times, ReduceOp::max);
  std::array<std::uint64_t, 1> wrong_everywhere = {wrong};
  comm.all_reduce(wrong_everywhere);
  std::sort(times.begin(), times.end());
  const auto at = [&](double quantile) {
    const double last = static_cast<double>(times.size() - 1);
    return times[static_cast<std::size_t>(std::ceil(quantile * last))];
  };
  return {times.front(), at(0.5), at(0.99), wrong_everywhere[0]};
}

std::uint64_t wrong_elements(const std::vector<Row>& rows) {
  std::uint64_t wrong = 0;
  for (const Row& row : rows) {
    wrong += row.out_of_place.wrong + (row.in_place ? row.in_place->wrong : 0);
  }
  return wrong;
}

std::optional<Row> measure(Communicator& comm, const Options& options, const std::string& algo,
                           std::uint64_t count, const Peer& peer) {
  return detail::with_type(options.type, [&](auto tag) -> std::optional<Row> {
    using T = typename decltype(tag)::Type;
    const ExactData<T> data(comm.rank(), comm.size(), options, count);
    HostBuffers<T> buffers(data, options);
    Row row{algo, {}, count, count * sizeof(T), {}, std::nullopt};
    if (algo == "copy") {
      row.out_of_place = time_copies(comm, options, buffers.call(false), row.bytes);
      return row;
    }
    for (const bool in_place : {false, true}) {
      Call call = buffers.call(in_place);
      std::function<void()> run = [&comm, &call] { comm.run(call); };
      if (peer) {
        const auto theirs = peer(call);
        if (!theirs && in_place) break;
        if (!theirs) return std::nullopt;
        run = *theirs;
      } else {
        if (options.op == Collective::broadcast && !in_place && comm.rank() != 0) call.in = nullptr;
        if (!has_algorithm(comm, algo, call)) return std::nullopt;
        if (algo != "auto") call.options.algorithm = algorithm_named(algo);
        row.used = name(comm.algorithm_for(call));
      }
      const Timing timing = time_one(comm, options, buffers, in_place, run);
      if (in_place) {
        row.in_place = timing;
      } else {
        row.out_of_place = timing;
      }
    }
    return row;
  });
}

double bus_factor(Collective op, int ranks) {
  const double n = ranks;
  switch (op) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::reduce_scatter:
    case Collective::all_gather:
      return (n - 1) / n;
    default:
      return 1;
  }
}

}  // namespace rondo::perf

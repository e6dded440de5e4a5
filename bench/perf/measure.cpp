#include "bench/perf/measure.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <numeric>
#include <span>

#include "base/time_slices.hpp"
#include "base/with_type.hpp"
#include "bench/perf/exact_data.hpp"

namespace rondo::perf {
namespace {

using Clock = std::chrono::steady_clock;

double since_us(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Buffers in ordinary or in registered memory.
template <class T>
class HostBuffers {
 public:
  HostBuffers(Communicator& comm, const ExactData<T>& data, const Options& options)
      : data_(data), options_(options) {
    const std::size_t count = data.input().size();
    if (options.registered) {
      registered_.push_back(comm.allocate<T>(count));
      registered_.push_back(comm.allocate<T>(count));
      in_ = registered_[0].span();
      out_ = registered_[1].span();
    } else {
      ordinary_.assign(2, std::vector<T>(count));
      in_ = ordinary_[0];
      out_ = ordinary_[1];
    }
    refill();
  }

  Call call(bool in_place) {
    return data_.call(options_, in_.data(), in_place ? in_.data() : out_.data());
  }
  // As a program writes its input before a call.
  void write_input() { std::copy(data_.input().begin(), data_.input().end(), in_.begin()); }
  // Before a call whose result is to be checked.
  void refill() {
    write_input();
    std::fill(out_.begin(), out_.end(), T{});
  }
  [[nodiscard]] std::uint64_t wrong(bool in_place) const {
    return data_.wrong(in_place ? in_ : out_);
  }
  // Reads the whole result.
  void use(bool in_place) const {
    const std::span<const std::byte> bytes =
        std::as_bytes(std::span<const T>(in_place ? in_ : out_));
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at + sizeof(sum) <= bytes.size(); at += sizeof(sum)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof(word));
      sum += word;
    }
    asm volatile("" : : "r"(sum));  // the compiler must not leave the loop out
  }

 private:
  const ExactData<T>& data_;
  const Options& options_;
  std::vector<std::vector<T>> ordinary_;
  std::vector<RegisteredMemory<T>> registered_;
  std::span<T> in_;
  std::span<T> out_;
};

// Computes for so much of this thread's own time, whatever else runs on its core.
void compute_for(double us) {
  const auto spent_us = [] {
    timespec spent{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return static_cast<double>(spent.tv_sec) * 1e6 + static_cast<double>(spent.tv_nsec) * 1e-3;
  };
  const double end_us = spent_us() + us;
  while (spent_us() < end_us) {
  }
}

// What is timed, and what comes before and after it.
struct Timed {
  std::function<void()> run;
  bool is_peer = false;
  std::function<void()> prepare;  // untimed, and all begin after it; empty: nothing
  std::function<void()> use;      // timed too, together with `run`; empty: nothing
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

// Runs until connections are made and the scheduler has settled: rounds of options.warmups runs,
// then twice as many each time, until a round takes 20 ms. Returns the microseconds of one run in
// the last round, the same on all ranks.
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

Timing time_runs(Communicator& comm, const Options& options, const Timed& timed,
                 const std::function<std::uint64_t()>& wrong) {
  const int iterations =
      iterations_for(comm, options, warm_up(comm, options, timed.run) + options.compute_us);
  std::vector<double> times(static_cast<std::size_t>(iterations));
  std::vector<double> with_use(timed.use ? times.size() : 0);
  comm.barrier();
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (timed.prepare) {
      timed.prepare();
      comm.barrier();
    }
    // What Rondo has asked the scheduler for in the calls before is not to help others.
    if (timed.is_peer) detail::give_back_short_slices();
    if (options.compute_us > 0) compute_for(options.compute_us);
    const auto start = Clock::now();
    timed.run();
    times[i] = since_us(start);
    if (!timed.use) continue;
    timed.use();
    with_use[i] = since_us(start);
  }
  Timing timing = summarise(comm, times, wrong());
  if (timed.use) timing.use_us = summarise(comm, with_use, 0).median_us;
  return timing;
}

// All ranks copy the vector at the same time: the fastest that memory allows.
Timing time_copies(Communicator& comm, const Options& options, const Call& call,
                   std::uint64_t bytes) {
  const auto copy = [&] {
    comm.barrier();
    std::memcpy(call.out, call.in, bytes);
  };
  return time_runs(comm, options, {copy, false, {}, {}}, [] { return std::uint64_t{0}; });
}

template <class T>
Timing time_one(Communicator& comm, const Options& options, HostBuffers<T>& buffers, bool in_place,
                bool is_peer, const std::function<void()>& run) {
  Timed timed{run, is_peer, {}, {}};
  if (options.fresh) timed.prepare = [&] { buffers.write_input(); };
  if (options.use) timed.use = [&, in_place] { buffers.use(in_place); };
  return time_runs(comm, options, timed, [&] {
    // Checks the last timed call; not in place, where each call has reduced the last one's result
    // again.
    const std::uint64_t before = in_place ? 0 : buffers.wrong(false);
    buffers.refill();
    run();
    return before + buffers.wrong(in_place);
  });
}

}  // namespace

bool never_in_place(Collective op) {
  return op == Collective::all_to_all || op == Collective::sendrecv || op == Collective::send;
}

std::vector<Call> calls_of_rank(const Call& call, int rank) {
  if (call.collective != Collective::send) return {call};
  Call answer = call;
  answer.collective = Collective::recv;
  if (rank > 1) return {};
  return rank == 0 ? std::vector<Call>{call, answer} : std::vector<Call>{answer, call};
}

Timing one_way(Timing timing) {
  timing.min_us /= 2;
  timing.median_us /= 2;
  timing.p99_us /= 2;
  timing.mean_us /= 2;
  timing.use_us /= 2;
  return timing;
}

int iterations_for(Communicator& comm, const Options& options, double one_us) {
  if (options.iterations > 0) return options.iterations;
  std::array<double, 1> slowest = {one_us};
  comm.all_reduce(slowest, ReduceOp::max);
  constexpr double kBudgetUs = 300e3;
  return static_cast<int>(std::clamp(kBudgetUs / std::max(slowest[0], 0.1), 10.0, 20000.0));
}

Timing summarise(Communicator& comm, std::vector<double>& times, std::uint64_t wrong) {
  std::array<double, 1> mean = {std::accumulate(times.begin(), times.end(), 0.0) /
                                static_cast<double>(times.size())};
  comm.all_reduce(mean, ReduceOp::max);
  comm.all_reduce(times, ReduceOp::max);
  std::array<std::uint64_t, 1> wrong_everywhere = {wrong};
  comm.all_reduce(wrong_everywhere);
  std::sort(times.begin(), times.end());
  const auto at = [&](double quantile) {
    const double last = static_cast<double>(times.size() - 1);
    return times[static_cast<std::size_t>(std::ceil(quantile * last))];
  };
  return {times.front(), at(0.5), at(0.99), mean[0], 0, wrong_everywhere[0]};
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
    HostBuffers<T> buffers(comm, data, options);
    Row row{algo, {}, count, count * sizeof(T), {}, std::nullopt};
    if (algo == "copy") {
      row.out_of_place = time_copies(comm, options, buffers.call(false), row.bytes);
      return row;
    }
    for (const bool in_place : {false, true}) {
      if (in_place && never_in_place(options.op)) break;
      Call call = buffers.call(in_place);
      std::vector<Call> calls;
      std::function<void()> run = [&] {
        for (const Call& one : calls) comm.run(one);
      };
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
        calls = calls_of_rank(call, comm.rank());
      }
      Timing timing = time_one(comm, options, buffers, in_place, peer != nullptr, run);
      if (options.op == Collective::send) timing = one_way(timing);
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
    case Collective::gather:
    case Collective::scatter:
    case Collective::all_to_all:
      return (n - 1) / n;
    default:
      return 1;
  }
}

}  // namespace rondo::perf

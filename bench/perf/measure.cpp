#include "bench/perf/measure.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/with_type.hpp"
#include "bench/exact_values.hpp"

namespace rondo::perf {
namespace {

using Clock = std::chrono::steady_clock;

double since_us(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// The exact inputs and results of one rank, typed; everything else is untyped calls.
template <class T>
class Data {
 public:
  Data(const Communicator& comm, const Options& options, std::uint64_t count)
      : comm_(comm),
        options_(options),
        own_(chunk_range(count, static_cast<std::uint64_t>(comm.size()),
                         static_cast<std::uint64_t>(comm.rank()))),
        in_(count),
        out_(count),
        fresh_(count),
        expected_(count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      fresh_[i] = exact::input<T>(options.redop, comm.rank(), comm.size(), i);
      expected_[i] = reduces() ? exact::result<T>(options.redop, comm.size(), i)
                               : exact::input<T>(options.redop, 0, comm.size(), i);
    }
    if (options.op == Collective::all_gather) fresh_ = expected_;
    in_ = fresh_;
  }

  Call call(bool in_place) {
    Call result;
    result.collective = options_.op;
    result.count = in_.size();
    result.type = kDataTypeOf<T>;
    result.op = options_.redop;
    T* whole = in_place ? in_.data() : out_.data();
    result.in = in_.data();
    result.out = whole;
    if (options_.op == Collective::reduce_scatter) result.out = whole + own_.offset;
    if (options_.op == Collective::all_gather) result.in = in_.data() + own_.offset;
    return result;
  }

  // Before a call whose result is to be checked.
  void refill() {
    in_ = fresh_;
    std::fill(out_.begin(), out_.end(), T{});
    if (options_.op == Collective::all_gather) {  // nothing but the own chunk is known
      std::fill(in_.begin(), in_.end(), T{});
      std::copy_n(fresh_.begin() + static_cast<std::ptrdiff_t>(own_.offset), own_.count,
                  in_.begin() + static_cast<std::ptrdiff_t>(own_.offset));
    }
  }

  [[nodiscard]] std::uint64_t wrong(bool in_place) const {
    if (options_.op == Collective::reduce && comm_.rank() != 0) return 0;
    const std::vector<T>& result = in_place ? in_ : out_;
    const Range checked =
        options_.op == Collective::reduce_scatter ? own_ : Range{0, expected_.size()};
    std::uint64_t count = 0;
    for (std::uint64_t i = checked.offset; i < checked.offset + checked.count; ++i) {
      count += result[i] == expected_[i] ? 0 : 1;
    }
    return count;
  }

 private:
  [[nodiscard]] bool reduces() const {
    return options_.op != Collective::all_gather && options_.op != Collective::broadcast;
  }

  const Communicator& comm_;
  const Options& options_;
  Range own_;
  std::vector<T> in_;
  std::vector<T> out_;
  std::vector<T> fresh_;
  std::vector<T> expected_;
};

// How often to run what took `one_us`: the same answer on all ranks.
int iterations_for(Communicator& comm, const Options& options, double one_us) {
  if (options.iterations > 0) return options.iterations;
  std::array<double, 1> slowest = {one_us};
  comm.all_reduce(slowest, ReduceOp::max);
  constexpr double kBudgetUs = 300e3;
  return static_cast<int>(std::clamp(kBudgetUs / std::max(slowest[0], 0.1), 10.0, 20000.0));
}

// The time of an iteration is the slowest rank's.
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

template <class T>
Timing time_one(Communicator& comm, const Options& options, Data<T>& data, bool in_place,
                const std::function<void()>& run) {
  const auto warm = Clock::now();
  for (int i = 0; i < options.warmups; ++i) run();
  const int iterations =
      iterations_for(comm, options, since_us(warm) / static_cast<double>(options.warmups));
  std::vector<double> times(static_cast<std::size_t>(iterations));
  comm.barrier();
  for (double& time : times) {
    const auto start = Clock::now();
    run();
    time = since_us(start);
  }
  data.refill();
  run();
  return summarise(comm, times, data.wrong(in_place));
}

}  // namespace

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
    Data<T> data(comm, options, count);
    Row row{algo, count, count * sizeof(T), {}, std::nullopt};
    for (const bool in_place : {false, true}) {
      Call call = data.call(in_place);
      std::function<void()> run = [&comm, &call] { comm.run(call); };
      if (peer) {
        const auto theirs = peer(call);
        if (!theirs && in_place) break;
        if (!theirs) return std::nullopt;
        run = *theirs;
      } else {
        if (options.op == Collective::broadcast && !in_place && comm.rank() != 0) call.in = nullptr;
        if (algo == "ring") call.options.algorithm = Algorithm::ring;
        if (algo == "naive") call.options.algorithm = Algorithm::naive;
      }
      const Timing timing = time_one(comm, options, data, in_place, run);
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

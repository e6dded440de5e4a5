// rondo-overlap: how much of the communication of a model's gradients hides behind its backprop, for buckets of
// several sizes. Backprop is played by sleeping, or spinning, until each gradient would be there.

#include <fmt/format.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <rondo/rondo.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/overlap/figures.hpp"
#include "bench/overlap/model.hpp"
#include "tools/launch/launch.hpp"

namespace rondo::overlap {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model = "resnet50";
  double compute_ms = 1000;
  bool busy = false;
  std::vector<std::size_t> bucket_kib = {0};
  int steps = 7;
  std::string wire = "exact";
  std::string json;
  int ranks = 0;
  int processes = 0;
};

struct Row {
  std::size_t bucket_bytes = 0;
  bool chosen = false;  // by the reducer
  std::size_t buckets = 0;
  std::array<Spread, kModes>
      us;  // from the start of backprop to the end of it and of communication
  Figures figures;
  double most_hidden = 0;
  double mark_us = 0;  // of overhead, for each parameter
};

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// One rank's model: gradients in one block of memory, in forward order, and a backprop that is only time.
class Player {
 public:
  Player(Communicator& comm, const Options& options, const Model& model)
      : comm_(comm), options_(options), ready_us_(ready_times(model, options.compute_ms * 1e3)) {
    std::size_t all = 0;
    for (const Tensor& tensor : model) all += tensor.count;
    memory_.resize(all);
    std::size_t offset = 0;
    for (const Tensor& tensor : model) {
      parameters_.emplace_back(tensor.name, std::span(memory_).subspan(offset, tensor.count));
      offset += tensor.count;
    }
  }

  Row measure(std::size_t bucket_bytes) {
    GradientOptions options;
    options.average = Average::sum;  // of zeros
    options.bucket_bytes = bucket_bytes;
    if (options_.wire == "bf16") options.wire = WireType::bf16;
    if (options_.wire == "f16") options.wire = WireType::f16;
    GradientReducer during(comm_, parameters_, options);
    options.bucket_bytes = during.bucket_bytes();
    options.overlap = false;
    GradientReducer after(comm_, parameters_, options);
    const std::array<GradientReducer*, kModes> reducers = {nullptr, &after, &during};

    std::array<std::vector<double>, kModes> times;
    std::vector<std::vector<double>> ready;
    std::vector<double> marks;
    for (int step = -1; step < options_.steps; ++step) {
      for (int turn = 0; turn < kModes; ++turn) {
        const auto mode = static_cast<std::size_t>((step + 1 + turn) % kModes);
        const double us = step_us(reducers[mode]);
        if (step < 0) continue;
        times[mode].push_back(us);
        if (reducers[mode] != &during) continue;
        marks.push_back(mark_us_ / static_cast<double>(parameters_.size()));
        const auto& buckets = during.statistics().buckets;
        ready.resize(buckets.size());
        for (std::size_t b = 0; b < buckets.size(); ++b) {
          ready[b].push_back(first_mark_us_ + buckets[b].ready_us);
        }
      }
    }
    return row(during, times, ready, marks);
  }

 private:
  // The slowest rank's time.
  double step_us(GradientReducer* reducer) {
    comm_.barrier();
    const auto start = Clock::now();
    mark_us_ = 0;
    for (std::size_t i = parameters_.size(); i-- > 0;) {
      wait_until(start, ready_us_[i]);
      if (reducer == nullptr) continue;
      const auto marked = Clock::now();
      if (i + 1 == parameters_.size()) first_mark_us_ = us_since(start);
      reducer->mark_ready(i);
      mark_us_ += us_since(marked);
    }
    if (reducer != nullptr) reducer->finish();
    std::array<double, 1> us = {us_since(start)};
    comm_.all_reduce(us, ReduceOp::max);
    return us[0];
  }

  void wait_until(Clock::time_point start, double us) const {
    const auto end = start + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double, std::micro>(us));
    if (options_.busy) {
      while (Clock::now() < end) {
      }
    } else {
      std::this_thread::sleep_until(end);
    }
  }

  [[nodiscard]] Row row(const GradientReducer& reducer,
                        const std::array<std::vector<double>, kModes>& times,
                        const std::vector<std::vector<double>>& ready,
                        const std::vector<double>& marks) const {
    Row row;
    row.bucket_bytes = reducer.bucket_bytes();
    for (std::size_t mode = 0; mode < kModes; ++mode) row.us[mode] = spread_of(times[mode]);
    row.figures = figures_of(row.us[0].median, row.us[1].median, row.us[2].median);
    std::vector<ReadyBucket> buckets;
    const auto& statistics = reducer.statistics().buckets;
    for (std::size_t b = 0; b < statistics.size(); ++b) {
      buckets.push_back({spread_of(ready[b]).median, statistics[b].bytes});
    }
    row.buckets = buckets.size();
    row.most_hidden = most_hidden(buckets, row.figures);
    row.mark_us = spread_of(marks).median;
    return row;
  }

  Communicator& comm_;
  const Options& options_;
  std::vector<double> ready_us_;
  std::vector<float> memory_;
  std::vector<Parameter> parameters_;
  double first_mark_us_ = 0;
  double mark_us_ = 0;
};

void print_header(const Options& options, const Model& model, int ranks) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : model) bytes += tensor.count * sizeof(float);
  fmt::print(
      "# {}: {} tensors, {} bytes; {} ranks; backprop of {} ms, {}; {} steps in each mode, in "
      "turn\n",
      options.model, model.size(), bytes, ranks, options.compute_ms,
      options.busy ? "spinning" : "sleeping", options.steps);
  fmt::print("# ms on the slowest rank, medians; +-: half of what nine of ten lie within\n");
  fmt::print("{:>10} {:>8} {:>9} {:>9} {:>7} {:>9} {:>7} {:>9} {:>7} {:>7} {:>7} {:>8}\n", "KiB",
             "buckets", "alone", "after", "+-", "during", "+-", "comm", "H", "H_max", "H/H_max",
             "us/mark");
}

void print(const Row& row) {
  const auto half = [](const Spread& spread) { return (spread.high - spread.low) / 2e3; };
  fmt::print(
      "{:>10} {:>8} {:>9.2f} {:>9.2f} {:>7.2f} {:>9.2f} {:>7.2f} {:>9.2f} {:>7.3f} {:>7.3f} "
      "{:>7.3f} "
      "{:>8.2f}\n",
      fmt::format("{}{}", row.chosen ? "auto " : "", row.bucket_bytes >> 10U), row.buckets,
      row.us[0].median / 1e3, row.us[1].median / 1e3, half(row.us[1]), row.us[2].median / 1e3,
      half(row.us[2]), row.figures.communication_us / 1e3, row.figures.hidden, row.most_hidden,
      row.most_hidden > 0 ? row.figures.hidden / row.most_hidden : 0, row.mark_us);
  std::fflush(stdout);
}

void write_json(const Options& options, const std::vector<Row>& rows, int ranks) {
  nlohmann::json all = {{"machine", {{"cores", this_machine().cores}}},
                        {"config",
                         {{"model", options.model},
                          {"compute_ms", options.compute_ms},
                          {"busy", options.busy},
                          {"steps", options.steps},
                          {"wire", options.wire},
                          {"ranks", ranks},
                          {"version", RONDO_VERSION}}},
                        {"rows", nlohmann::json::array()}};
  for (const Row& row : rows) {
    nlohmann::json times;
    for (int mode = 0; mode < kModes; ++mode) {
      const Spread& spread = row.us[static_cast<std::size_t>(mode)];
      times[kModeNames[mode]] = {
          {"median", spread.median}, {"low", spread.low}, {"high", spread.high}};
    }
    all["rows"].push_back({{"bucket_bytes", row.bucket_bytes},
                           {"chosen", row.chosen},
                           {"buckets", row.buckets},
                           {"time_us", times},
                           {"communication_us", row.figures.communication_us},
                           {"hidden", row.figures.hidden},
                           {"most_hidden", row.most_hidden},
                           {"us_per_mark", row.mark_us}});
  }
  std::ofstream out(options.json);
  out << all.dump(1) << '\n';
  if (!out) throw std::runtime_error(fmt::format("'{}' cannot be written", options.json));
}

int run(const Options& options, Communicator& comm) {
  // Sleeps end when they should, not up to 50 us later.
  ::prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  const Model model = options.model == "resnet50" ? resnet50() : read_model(options.model);
  Player player(comm, options, model);
  if (comm.rank() == 0) print_header(options, model, comm.size());
  std::vector<Row> rows;
  for (const std::size_t kib : options.bucket_kib) {
    Row row = player.measure(kib << 10U);
    row.chosen = kib == 0;
    if (comm.rank() == 0) print(row);
    rows.push_back(row);
  }
  if (comm.rank() == 0 && !options.json.empty()) write_json(options, rows, comm.size());
  return 0;
}

}  // namespace
}  // namespace rondo::overlap

int main(int argc, char** argv) {
  rondo::overlap::Options options;
  CLI::App app(
      "Measures how much of the communication of gradients hides behind backprop: each step is "
      "taken alone, with "
      "communication after backprop, and during it. Start it with mpirun -n RANKS, or with --ranks "
      "or "
      "--processes.",
      "rondo-overlap");
  app.add_option("--model", options.model,
                 "resnet50, or a JSON file: [{\"name\": ..., \"count\": elements, \"work\": "
                 "share}, ...] in forward "
                 "order")
      ->capture_default_str();
  app.add_option("--compute-ms", options.compute_ms, "how long backprop takes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--busy", options.busy, "backprop keeps its core busy; else it sleeps");
  app.add_option("--bucket-kib", options.bucket_kib,
                 "caps of buckets, one row each; 0: the reducer's choice")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("-n,--steps", options.steps, "steps in each mode")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--wire", options.wire, "as what gradients travel")
      ->check(CLI::IsMember({"exact", "bf16", "f16"}))
      ->capture_default_str();
  app.add_option("--json", options.json, "file for the rows");
  app.add_option("--ranks", options.ranks, "ranks that are threads, without mpirun")
      ->check(CLI::Range(1, 64));
  app.add_option("--processes", options.processes,
                 "ranks that are forked processes, without mpirun")
      ->check(CLI::Range(1, 64))
      ->excludes("--ranks");
  app.set_version_flag("--version", RONDO_VERSION);
  CLI11_PARSE(app, argc, argv);
  return rondo::launch::launch(
      {"rondo-overlap", options.ranks, options.processes, true, {}}, &argc, &argv,
      [&](rondo::Communicator comm) { return rondo::overlap::run(options, comm); });
}

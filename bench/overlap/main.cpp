// rondo-overlap: how much of the communication of a model's gradients hides behind its backprop,
// for buckets of several sizes. Instead of backprop, a rank sleeps or spins until each gradient
// would be complete.

#include <fmt/format.h>
#include <sys/prctl.h>

#include <cstdio>
#include <rondo/rondo.hpp>
#include <string>
#include <vector>

#include "bench/overlap/files.hpp"
#include "bench/overlap/model.hpp"
#include "bench/overlap/options.hpp"
#include "bench/overlap/player.hpp"
#include "tools/launch/launch.hpp"
#include "tools/launch/write_file.hpp"

namespace rondo::overlap {
namespace {

void print_header(const Options& options, const Model& model, int ranks) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : model) bytes += tensor.count * sizeof(float);
  fmt::print(
      "# {}: {} tensors, {} bytes; {} ranks; backprop of {} ms, {}; {} steps in each mode, in "
      "turn\n",
      options.model, model.size(), bytes, ranks, options.compute_ms,
      options.busy ? "spinning" : "sleeping", options.steps);
  fmt::print("# ms on the slowest rank, medians; +-: half the range of the middle 90 % of steps\n");
  fmt::print("{:>10} {:>8} {:>9} {:>9} {:>7} {:>9} {:>7} {:>9} {:>7} {:>7} {:>7} {:>8}\n", "KiB",
             "buckets", "alone", "after", "+-", "during", "+-", "comm", "H", "H_max", "H/H_max",
             "us/mark");
}

void print(const Row& row) {
  const Measured& its = row.measured;
  const auto half = [](const Spread& spread) { return (spread.high - spread.low) / 2e3; };
  fmt::print(
      "{:>10} {:>8} {:>9.2f} {:>9.2f} {:>7.2f} {:>9.2f} {:>7.2f} {:>9.2f} {:>7.3f} {:>7.3f} "
      "{:>7.3f} "
      "{:>8.2f}\n",
      fmt::format("{}{}", row.chosen ? "auto " : "", its.bucket_bytes >> 10U), its.buckets,
      its.of(Mode::alone).exchanged.median / 1e3, its.of(Mode::after).exchanged.median / 1e3,
      half(its.of(Mode::after).exchanged), its.of(Mode::during).exchanged.median / 1e3,
      half(its.of(Mode::during).exchanged), its.figures.communication_us / 1e3, its.figures.hidden,
      its.most_hidden, its.most_hidden > 0 ? its.figures.hidden / its.most_hidden : 0, row.mark_us);
  std::fflush(stdout);
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
  if (comm.rank() == 0 && !options.json.empty()) write_rows(options, rows, comm.size());
  return 0;
}

}  // namespace
}  // namespace rondo::overlap

int main(int argc, char** argv) {
  rondo::launch::report_full_files();
  rondo::overlap::Options options;
  if (const auto status = rondo::overlap::read_command_line(argc, argv, options)) return *status;
  return rondo::launch::launch(
      {"rondo-overlap", options.ranks, options.processes, true, {}}, &argc, &argv,
      [&](rondo::Communicator comm) { return rondo::overlap::run(options, comm); });
}

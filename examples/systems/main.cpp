// rondo-systems: the systems of docs/documents.md beside plain all-reduce (parameter servers, parts
// of a model on several ranks, unequal shares, separate steps), other models, and measurements.

#include <rondo/rondo.hpp>
#include <utility>

#include "examples/layers/compute_threads.hpp"
#include "examples/layers/equal_ranks.hpp"
#include "examples/lenet/summing.hpp"
#include "measuring.hpp"
#include "options.hpp"
#include "tools/launch/launch.hpp"
#include "tools/launch/write_file.hpp"
#include "train.hpp"

namespace {

namespace systems = lenet::systems;

void run(const systems::SystemOptions& named, rondo::Communicator ranks) {
  lenet::require_equal_settings(ranks, named.settings);
  systems::SystemOptions options = named;
  if (options.measured_steps > 0) {
    systems::measure_steps(options, ranks);
    return;
  }
  if (options.measured_exchanges > 0) {
    systems::measure_exchanges(options, ranks);
    return;
  }
  if (options.strategy != "all-reduce") {
    systems::train_served(options, ranks);
    return;
  }
  if (options.device == "cuda") {
    systems::train_on_devices(options, std::move(ranks));
    return;
  }
  if (!options.overlap) options.overlap = lenet::overlap_pays(ranks, options.threads);
  if (options.split.empty()) {
    systems::train_on_host(options, ranks);
  } else {
    systems::train_split(options, ranks);
  }
}

}  // namespace

int main(int argc, char** argv) {
  rondo::launch::report_full_files();
  systems::SystemOptions options;
  if (const auto status = systems::read_command_line(argc, argv, options)) return *status;
  const bool own_threads = options.device == "cuda" || options.overlap.value_or(true) ||
                           options.strategy != "all-reduce";
  return rondo::launch::launch({"rondo-systems", options.ranks, options.processes, own_threads, {}},
                               &argc, &argv, [&](rondo::Communicator comm) {
                                 lenet::use_compute_threads(options.threads);
                                 run(options, std::move(comm));
                                 return 0;
                               });
}

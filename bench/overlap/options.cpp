#include "bench/overlap/options.hpp"

#include <CLI/CLI.hpp>
#include <rondo/version.hpp>

#include "tools/launch/numbers.hpp"
#include "tools/launch/options.hpp"

namespace rondo::overlap {

std::optional<int> read_command_line(int argc, char** argv, Options& options) {
  CLI::App app(
      "Measures how much of the communication of gradients hides behind backprop: each step runs "
      "without communication, with communication after backprop, and with communication during "
      "backprop. Start it with mpirun -n RANKS, or with --ranks or --processes.",
      "rondo-overlap");
  app.add_option("--model", options.model,
                 "resnet50, or a JSON file: [{\"name\": ..., \"count\": elements, \"work\": "
                 "share}, ...] in forward "
                 "order")
      ->capture_default_str();
  app.add_option("--compute-ms", options.compute_ms, "how long backprop takes")
      ->check(launch::finite_between(1e-3, 1e9))
      ->capture_default_str();
  app.add_flag("--busy", options.busy, "backprop keeps its core busy, instead of sleeping");
  app.add_option("--bucket-kib", options.bucket_kib,
                 "caps of buckets, one row each; 0: the reducer's choice")
      ->delimiter(',')
      ->check(launch::whole_from(0))
      ->capture_default_str();
  app.add_option("-n,--steps", options.steps, "steps in each mode")
      ->check(launch::whole_from(1))
      ->capture_default_str();
  app.add_option("--wire", options.wire, "type in which gradients are sent")
      ->check(CLI::IsMember({"exact", "bf16", "f16"}))
      ->capture_default_str();
  app.add_option("--json", options.json, "file for the rows");
  launch::add_rank_options(app, options.ranks, options.processes, 64);
  app.set_version_flag("--version", RONDO_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return std::nullopt;
}

}  // namespace rondo::overlap

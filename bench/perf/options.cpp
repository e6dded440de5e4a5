#include "bench/perf/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>
#include <rondo/version.hpp>

#include "base/collective_traits.hpp"
#include "base/with_type.hpp"
#include "tools/launch/launch.hpp"
#include "tools/launch/numbers.hpp"
#include "tools/launch/options.hpp"

namespace rondo::perf {
namespace {

template <class Enum>
std::map<std::string, Enum> names(int count) {
  std::map<std::string, Enum> result;
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<Enum>(i);
    result.emplace(name(value), value);
  }
  return result;
}

}  // namespace

Options parse(int argc, char** argv, bool has_mpi, bool has_gloo) {
  Options options;
  CLI::App app("Measures collectives and checks every element of their results.", "rondo-perf");
  auto collectives = names<Collective>(kCollectiveCount);
  collectives.erase("barrier");
  collectives.erase("recv");
  launch::add_named_option(
      app, "--op", options.op, collectives,
      "collective; send: a message from rank 0 to rank 1 and one back, of which the time is half; "
      "sendrecv: all ranks to the next one")
      ->default_str("all_reduce");
  app.add_option(
         "--algo", options.algos,
         fmt::format(
             "auto, ring, naive, one_shot, recursive_doubling, halving_doubling, "
             "hierarchical, tree, direct, chain, pairwise{}{}, sockets (of one host, whose ranks "
             "sleep when they wait); and copy: each rank copies its vector; several with "
             "commas",
             has_mpi ? ", mpi" : "", has_gloo ? ", gloo (on one host)" : ""))
      ->delimiter(',')
      ->check(CLI::IsMember({"auto", "ring", "naive", "one_shot", "recursive_doubling",
                             "halving_doubling", "hierarchical", "tree", "direct", "chain",
                             "pairwise", "copy", "mpi", "gloo", "sockets"}));
  launch::add_bytes_option(app, "-b", options.first_bytes, "first size, such as 4 or 1KiB")
      ->default_str("4");
  launch::add_bytes_option(app, "-e", options.last_bytes, "last size")->default_str("64MiB");
  app.add_option("-f", options.factor, "factor from one size to the next")
      ->check(CLI::Range(1.01, 1e9))
      ->capture_default_str();
  launch::add_named_option(app, "-d", options.type, names<DataType>(kDataTypeCount), "element type")
      ->default_str("f32");
  launch::add_named_option(app, "-o", options.redop, names<ReduceOp>(kReduceOpCount), "reduction")
      ->default_str("sum");
  app.add_option("-n", options.iterations,
                 "timed iterations; 0: as many as fit in a third of a second")
      ->check(launch::whole_from(0))
      ->capture_default_str();
  app.add_option("-w", options.warmups, "untimed iterations before them")
      ->check(launch::whole_from(1))
      ->capture_default_str();
  app.add_flag(
      "--registered", options.registered,
      "put buffers in memory of rondo::reachable_memory(), which all ranks of a host reach; "
      "ranks of one process (--ranks), on one device, reach all memory anyway");
  app.add_flag("--fresh", options.fresh,
               "each rank writes its whole input before each timed call, as a trainer does");
  app.add_flag("--use", options.use,
               "also print the time of a call and of reading its whole result afterwards");
  app.add_option("--compute-us", options.compute_us,
                 "each rank computes for so long, in its own time, before each timed call; then "
                 "times are the mean of all calls, on the rank where it is the greatest")
      ->check(CLI::NonNegativeNumber);
  launch::add_rank_options(app, options.ranks, options.processes, 16);
  std::string device = "cpu";
  app.add_option("--device", device,
                 "cpu: host memory; cuda: GPU memory, one GPU for each rank in turn")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  options.devices.device = cuda::kSpreadOverDevices;
  app.add_option("--channels", options.devices.channels,
                 "on devices: blocks of a rank; 0: the library chooses")
      ->check(launch::whole_from(0));
  app.add_option("--block-threads", options.devices.threads,
                 "on devices: threads of a block; 0: the library chooses")
      ->check(launch::whole_from(0));
  launch::add_bytes_option(app, "--one-shot-bytes", options.devices.one_shot_bytes,
                           "on devices: the largest call by one_shot; unset: the library chooses");
  launch::add_bytes_option(app, "--slot-bytes", options.host.slot_bytes,
                           "size of a FIFO's slot; 0: the library chooses");
  app.add_option("--slots", options.host.slots, "slots of a FIFO; 0: the library chooses")
      ->check(launch::whole_from(0));
  app.add_flag("--rank-order", options.host.rank_order, "promise reductions in rank order");
  launch::add_named_option(app, "--carrier", options.host.carrier, launch::carrier_names(),
                           "what carries slots between ranks");
  app.add_option("--tune", options.tune,
                 "instead of the rows: measure which algorithm is the fastest at which sizes, and "
                 "write this file for RONDO_TUNING");
  app.add_option("--json", options.json, "file to write the rows to");
  app.set_version_flag("--version", RONDO_VERSION);
  try {
    app.parse(argc, argv);
    options.on_devices = device == "cuda";
    options.devices.slot_bytes = options.host.slot_bytes;
    options.devices.slots = options.host.slots;
    if (options.last_bytes < options.first_bytes) {
      throw CLI::ValidationError(
          "-e", fmt::format("the last size, {} bytes, is below the first, {} bytes",
                            options.last_bytes, options.first_bytes));
    }
    const bool pairwise = detail::goes_pairwise(options.op);
    if (options.on_devices && (options.fresh || options.use || options.compute_us > 0)) {
      throw CLI::ValidationError("--device", "--fresh, --use and --compute-us are for host memory");
    }
    if (options.on_devices &&
        !(detail::is_common(options.type) && detail::is_common(options.redop))) {
      throw CLI::ValidationError("--device", fmt::format("{} of {} is for host memory",
                                                         name(options.redop), name(options.type)));
    }
    if (options.algos.empty() && options.on_devices && pairwise) {
      options.algos = {"pairwise", "copy"};
    } else if (options.algos.empty() && options.on_devices) {
      options.algos = {"ring", "one_shot", "direct", "naive", "copy"};
    } else if (options.algos.empty()) {
      options.algos = {"auto"};
      if (!pairwise) options.algos.emplace_back("naive");
      if (has_mpi && launch::starts_mpi(options.ranks, options.processes)) {
        options.algos.emplace_back("mpi");
      }
    }
    if (!supports(options.type, options.redop)) {
      throw CLI::ValidationError("-o", std::string(name(options.redop)) + " is not defined for " +
                                           std::string(name(options.type)));
    }
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

}  // namespace rondo::perf

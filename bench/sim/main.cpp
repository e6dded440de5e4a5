// rondo-sim: how long calls and training steps would take on 10 to 100,000 ranks.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/sim/calibrate.hpp"
#include "bench/sim/options.hpp"
#include "tools/launch/launch.hpp"
#include "tools/launch/write_file.hpp"

namespace rondo::sim {
namespace {

constexpr double kUsOfMs = 1e3;
constexpr double kUsOfS = 1e6;

std::string text_of(const Spread& spread, double unit_us = kUsOfMs) {
  if (spread.low == spread.high) return fmt::format("{:.3f}", spread.median / unit_us);
  return fmt::format("{:.3f} ({:.3f} .. {:.3f})", spread.median / unit_us, spread.low / unit_us,
                     spread.high / unit_us);
}

void print_network(const Network& network) {
  fmt::print(
      "# {} ranks a host; links of {:.1f} bytes/us and {:.1f} us, late by {:.2f} us; {:.2f} us a "
      "slice, reduces {:.0f} and copies {:.0f} bytes/us\n",
      network.ranks_per_host, network.link_bytes_per_us, network.latency_us, network.jitter_us,
      network.slice_us, network.reduce_bytes_per_us, network.copy_bytes_per_us);
}

// For each number of ranks, the strategy and the buckets of the shortest step.
void print_best(const Question& question, const std::vector<Answer>& answers) {
  for (const int ranks : question.ranks) {
    const Answer* best = nullptr;
    for (const Answer& answer : answers) {
      if (answer.ranks != ranks || !answer.objection.empty() || answer.beyond_library) continue;
      if (best == nullptr || answer.step_us.median < best->step_us.median) best = &answer;
    }
    if (best != nullptr) {
      fmt::print("# shortest step of {} ranks: {}, buckets of {} KiB\n", ranks,
                 name(best->strategy), best->bytes >> 10U);
    }
  }
}

void print(const Question& question, const std::vector<Answer>& answers) {
  print_network(question.network);
  fmt::print("# ms: medians of the runs, and the least and the greatest\n");
  if (question.job) {
    fmt::print("{:>8} {:<19} {:>12} {:<34} {:<34} {}\n", "ranks", "strategy", "bucket KiB", "step",
               "after backprop", question.steps_per_epoch > 0 ? "epoch, s" : "");
  } else {
    fmt::print("{:>8} {:<19} {:>12} {}\n", "ranks", "strategy", "KiB", "call");
  }
  bool beyond = false;
  for (const Answer& answer : answers) {
    const char* mark = answer.beyond_library ? " *" : "";
    beyond = beyond || answer.beyond_library;
    fmt::print("{:>8} {:<19} ", answer.ranks, name(answer.strategy) + mark);
    if (!answer.objection.empty()) {
      fmt::print("{}\n", answer.objection);
    } else if (question.job) {
      fmt::print("{:>12} {:<34} {:<34} {}\n", answer.bytes >> 10U, text_of(answer.step_us),
                 text_of(answer.exposed_us),
                 question.steps_per_epoch > 0 ? text_of(answer.epoch_us, kUsOfS) : "");
    } else {
      fmt::print("{:>12} {}\n", answer.bytes >> 10U, text_of(answer.call_us));
    }
  }
  if (beyond) {
    fmt::print("# * the library refuses such calls: inside a host it has other algorithms\n");
  }
  const auto& asked = question.strategies;
  if (std::find(asked.begin(), asked.end(), Strategy::server) != asked.end()) {
    fmt::print(
        "# server: about the least that servers take, since neither copies nor shared cores are "
        "counted\n");
  }
  if (question.job) print_best(question, answers);
}

nlohmann::json json_of(const Spread& spread) {
  return {{"low", spread.low}, {"median", spread.median}, {"high", spread.high}};
}

nlohmann::json json_of(const Question& question, const Answer& answer) {
  nlohmann::json row = {{"ranks", answer.ranks}, {"strategy", name(answer.strategy)}};
  if (!answer.objection.empty()) {
    row["objection"] = answer.objection;
    return row;
  }
  row[question.job ? "bucket_bytes" : "bytes"] = answer.bytes;
  if (answer.beyond_library) row["beyond_library"] = true;
  row["call_us"] = json_of(answer.call_us);
  if (question.job) {
    row["step_us"] = json_of(answer.step_us);
    row["exposed_us"] = json_of(answer.exposed_us);
    if (question.steps_per_epoch > 0) row["epoch_us"] = json_of(answer.epoch_us);
  }
  return row;
}

void write(const std::string& file, const Question& question, const std::vector<Answer>& answers) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Answer& answer : answers) rows.push_back(json_of(question, answer));
  const nlohmann::json all = {{"network", json_of(question.network)}, {"rows", rows}};
  launch::write_file(file, all.dump(1) + "\n");
}

int measure(const std::string& file, Communicator& comm) {
  const Network network = measure_network(comm);
  if (comm.rank() != 0) return 0;
  print_network(network);
  write_network(file, network);
  return 0;
}

int run(int argc, char** argv) {
  Options options;
  if (const auto status = read_command_line(argc, argv, options)) return *status;
  if (!options.measured.empty()) {
    return launch::launch({"rondo-sim", 0, 0, false, {}}, &argc, &argv,
                          [&](Communicator comm) { return measure(options.measured, comm); });
  }
  const std::vector<Answer> answers = answers_to(options.question);
  print(options.question, answers);
  const auto refused = [](const Answer& answer) { return !answer.objection.empty(); };
  if (std::all_of(answers.begin(), answers.end(), refused)) {
    throw std::runtime_error("none of this can be simulated");
  }
  if (!options.json.empty()) write(options.json, options.question, answers);
  return 0;
}

}  // namespace
}  // namespace rondo::sim

int main(int argc, char** argv) {
  rondo::launch::report_full_files();
  try {
    return rondo::sim::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rondo-sim: {}\n", error.what());
    return 2;
  }
}

#include "bench/perf/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/perf/measure.hpp"
#include "bench/perf/progress_line.hpp"
#include "tools/launch/write_file.hpp"

namespace rondo::perf {
namespace {

constexpr std::uint64_t kSmallest = 4;
constexpr int kSizes = 23;  // up to 16 MiB, whose fastest algorithm is used above too
// An algorithm replaces the smaller sizes' best one only if it takes less than this part of that
// one's time.
constexpr double kGain = 0.97;

struct Sample {
  std::uint64_t bytes = 0;
  std::vector<double> time_us;  // by algorithm; 0: the algorithm cannot carry this size
};

struct Rule {
  std::uint64_t from_bytes = 0;
  std::size_t algorithm = 0;
};

bool is_faster(const Sample& sample, std::size_t a, std::size_t b) {
  if (sample.time_us[a] == 0) return false;
  return sample.time_us[b] == 0 || sample.time_us[a] < kGain * sample.time_us[b];
}

std::size_t fastest(const Sample& sample) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < sample.time_us.size(); ++i) {
    if (sample.time_us[best] == 0 ||
        (sample.time_us[i] > 0 && sample.time_us[i] < sample.time_us[best])) {
      best = i;
    }
  }
  return best;
}

// A change must hold at the next size too: one slow measurement makes no rule.
std::vector<Rule> rules_of(const std::vector<Sample>& samples) {
  std::vector<Rule> rules = {{0, fastest(samples.front())}};
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const std::size_t now = rules.back().algorithm;
    const std::size_t best = fastest(samples[i]);
    const bool holds = i + 1 == samples.size() || is_faster(samples[i + 1], best, now);
    if (best != now && is_faster(samples[i], best, now) && holds)
      rules.push_back({samples[i].bytes, best});
  }
  return rules;
}

bool all_share_memory(const Topology& topology) {
  return std::none_of(topology.edges.begin(), topology.edges.end(), [](const Edge& edge) {
    return edge.in_ring && edge.carrier != Carrier::shm;
  });
}

// Replaces the file's rules of the same reach and number of ranks.
void write(const std::string& file, const std::vector<std::string>& prefixes,
           const std::vector<std::string>& lines) {
  std::string text =
      "# reach, ranks, smallest size in bytes, algorithm: written by rondo-perf --tune\n";
  std::ifstream before(file);
  for (std::string line; std::getline(before, line);) {
    const bool replaced = std::any_of(prefixes.begin(), prefixes.end(),
                                      [&](const auto& prefix) { return line.starts_with(prefix); });
    if (!line.empty() && line[0] != '#' && !replaced) text += line + "\n";
  }
  before.close();
  for (const std::string& line : lines) text += line + "\n";
  launch::write_file(file, text);
}

// What ranks reach of each other, and the algorithms that are measured for it.
struct Case {
  std::string reach;
  bool registered = false;
  std::vector<std::string> algos;
};

bool offers_hierarchical(const Communicator& comm) {
  const Call any{.collective = Collective::all_reduce,
                 .options = {.algorithm = Algorithm::hierarchical}};
  try {
    return comm.algorithm_for(any) == Algorithm::hierarchical;
  } catch (const UsageError&) {
    return false;
  }
}

// Ranks of one process reach all buffers; processes that share memory, registered ones.
std::vector<Case> cases_for(Communicator& comm, const Options& options) {
  const Topology& topology = comm.topology();
  const std::vector<std::string> through_slots = {
      "ring", "naive", "one_shot", "recursive_doubling", "halving_doubling", "hierarchical"};
  const std::vector<std::string> with_direct = {"ring", "naive", "one_shot", "direct"};
  if (!all_share_memory(topology)) {
    return {{offers_hierarchical(comm) ? "hosts" : "mpi", false, through_slots}};
  }
  if (options.ranks > 0) return {{"buffers", false, with_direct}};
  return {{"shm", false, through_slots}, {"buffers", true, with_direct}};
}

std::vector<Sample> sample_all(Communicator& comm, const Options& options, const Case& which,
                               ProgressLine& progress) {
  std::vector<Sample> samples;
  for (int size = 0; size < kSizes; ++size) {
    const std::uint64_t bytes = kSmallest << static_cast<unsigned>(size);
    Sample sample{bytes, {}};
    for (const std::string& algo : which.algos) {
      progress.next(algo, bytes);
      const auto row = measure(comm, options, algo, bytes / size_of(options.type), {});
      sample.time_us.push_back(row ? row->out_of_place.median_us + row->in_place->median_us : 0);
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace

void tune(Communicator& comm, const Options& options) {
  const std::vector<Case> cases = cases_for(comm, options);
  std::vector<std::string> prefixes;
  std::vector<std::string> lines;
  ProgressLine progress(comm.rank() == 0, cases.size() * kSizes * cases[0].algos.size());
  for (const Case& which : cases) {
    Options with = options;
    with.registered = which.registered;
    const std::vector<Sample> samples = sample_all(comm, with, which, progress);
    prefixes.push_back(fmt::format("{} {} ", which.reach, comm.size()));
    for (const Rule& rule : rules_of(samples)) {
      lines.push_back(
          fmt::format("{}{} {}", prefixes.back(), rule.from_bytes, which.algos[rule.algorithm]));
    }
  }
  if (comm.rank() != 0) return;
  write(options.tune, prefixes, lines);
  progress.clear();
  for (const std::string& line : lines) fmt::print("{}\n", line);
}

}  // namespace rondo::perf

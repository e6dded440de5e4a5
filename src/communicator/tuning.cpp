#include "communicator/tuning.hpp"

#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/environment.hpp"

namespace rondo::detail {
namespace {

TuningRule parse_rule(const std::string& line, const std::string& where) {
  std::istringstream words(line);
  std::string carrier;
  std::string algorithm;
  std::string rest;
  TuningRule rule;
  std::int64_t from_bytes = 0;
  words >> carrier >> rule.ranks >> from_bytes >> algorithm;
  const auto known = algorithm_named(algorithm);
  const bool fits = (carrier == name(Carrier::shm) || carrier == name(Carrier::mpi)) &&
                    rule.ranks >= 1 && from_bytes >= 0 &&
                    known.value_or(Algorithm::automatic) != Algorithm::automatic;
  if (words.fail() || words >> rest || !fits) {
    throw UsageError(
        fmt::format("{}: '{}' must be: shm or mpi, a number of ranks, a number of bytes, and ring, "
                    "naive, one_shot or recursive_doubling",
                    where, line));
  }
  rule.carrier = carrier == name(Carrier::shm) ? Carrier::shm : Carrier::mpi;
  rule.from_bytes = static_cast<std::uint64_t>(from_bytes);
  rule.algorithm = *known;
  return rule;
}

}  // namespace

Algorithm Tuning::algorithm_for(Carrier carrier, int ranks, std::uint64_t bytes) const {
  // The number of ranks whose rules apply.
  std::int32_t of_ranks = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const TuningRule& rule = rules[i];
    if (rule.carrier != carrier) continue;
    const bool better = rule.ranks <= ranks ? of_ranks > ranks || rule.ranks > of_ranks
                                            : of_ranks > ranks && rule.ranks < of_ranks;
    if (of_ranks == 0 || better) of_ranks = rule.ranks;
  }
  const TuningRule* best = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const TuningRule& rule = rules[i];
    if (rule.carrier != carrier || rule.ranks != of_ranks || rule.from_bytes > bytes) continue;
    if (best == nullptr || rule.from_bytes >= best->from_bytes) best = &rule;
  }
  return best == nullptr ? Algorithm::ring : best->algorithm;
}

Tuning default_tuning() {
  static constexpr TuningRule kRules[] = {
      {Carrier::shm, Algorithm::one_shot, 2, 0},
      {Carrier::shm, Algorithm::ring, 2, 12288},
      {Carrier::shm, Algorithm::one_shot, 4, 0},
      {Carrier::shm, Algorithm::ring, 4, 32768},
      {Carrier::shm, Algorithm::one_shot, 8, 0},
      {Carrier::shm, Algorithm::ring, 8, 65536},
      {Carrier::mpi, Algorithm::recursive_doubling, 2, 0},
      {Carrier::mpi, Algorithm::ring, 2, 65536},
      {Carrier::mpi, Algorithm::recursive_doubling, 3, 0},
      {Carrier::mpi, Algorithm::ring, 3, 8192},
      {Carrier::mpi, Algorithm::naive, 4, 0},
      {Carrier::mpi, Algorithm::recursive_doubling, 4, 2048},
      {Carrier::mpi, Algorithm::ring, 4, 8192},
      {Carrier::mpi, Algorithm::naive, 8, 0},
      {Carrier::mpi, Algorithm::recursive_doubling, 8, 2304},
      {Carrier::mpi, Algorithm::ring, 8, 32768},
      // From the cost model: rank 0 handles 2(n - 1) messages, others make log2 n exchanges.
      {Carrier::mpi, Algorithm::recursive_doubling, 17, 0},
      {Carrier::mpi, Algorithm::ring, 17, 65536},
  };
  Tuning tuning;
  for (const TuningRule& rule : kRules) tuning.rules[tuning.count++] = rule;
  return tuning;
}

Tuning parse_tuning(const std::string& text, const std::string& file) {
  Tuning tuning;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    const std::string where = fmt::format("RONDO_TUNING: {}, line {}", file, number);
    if (tuning.count == Tuning::kMostRules) {
      throw UsageError(fmt::format("{}: more than {} rules", where, Tuning::kMostRules));
    }
    tuning.rules[tuning.count++] = parse_rule(line, where);
  }
  if (tuning.count == 0) {
    throw UsageError(
        fmt::format("RONDO_TUNING: {} holds no rules; rondo-perf --tune writes some", file));
  }
  return tuning;
}

Tuning load_tuning() {
  const std::optional<std::string> file = environment_tuning();
  if (!file) return default_tuning();
  std::ifstream stream(*file);
  if (!stream) throw UsageError(fmt::format("RONDO_TUNING: cannot read {}", *file));
  std::ostringstream text;
  text << stream.rdbuf();
  return parse_tuning(text.str(), *file);
}

}  // namespace rondo::detail

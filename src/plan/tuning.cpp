#include "plan/tuning.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include <rondo/errors.hpp>
#include <rondo/topology.hpp>

#include "base/environment.hpp"
#include "base/index.hpp"

namespace rondo::detail {
namespace {

constexpr Route kRoutes[] = {Route::buffers, Route::memory, Route::network, Route::hosts};

TuningRule parse_rule(const std::string& line, const std::string& where) {
  std::istringstream words(line);
  std::string route;
  std::string algorithm;
  std::string rest;
  TuningRule rule;
  std::int64_t from_bytes = 0;
  words >> route >> rule.ranks >> from_bytes >> algorithm;
  const auto known = algorithm_named(algorithm);
  const auto* named = std::find_if(std::begin(kRoutes), std::end(kRoutes),
                                   [&](Route one) { return name(one) == route; });
  const bool fits = named != std::end(kRoutes) && rule.ranks >= 1 && from_bytes >= 0 &&
                    known.value_or(Algorithm::automatic) != Algorithm::automatic;
  if (words.fail() || words >> rest || !fits) {
    throw UsageError(fmt::format(
        "{}: '{}' must be: buffers, shm, mpi or hosts, a number of ranks, a number of bytes, "
        "and ring, naive, one_shot, recursive_doubling, halving_doubling, hierarchical, direct or "
        "chain",
        where, line));
  }
  rule.route = *named;
  rule.from_bytes = static_cast<std::uint64_t>(from_bytes);
  rule.algorithm = *known;
  return rule;
}

}  // namespace

std::string_view name(Route route) {
  if (route == Route::buffers) return "buffers";
  if (route == Route::hosts) return "hosts";
  return rondo::name(route == Route::memory ? Carrier::shm : Carrier::mpi);
}

void AlgorithmBySize::add(std::uint64_t from_bytes, Algorithm algorithm) {
  const auto after = std::upper_bound(
      by_size_.begin(), by_size_.end(), from_bytes,
      [](std::uint64_t bytes, const FromSize& one) { return bytes < one.from_bytes; });
  by_size_.insert(after, {from_bytes, algorithm});
}

Algorithm AlgorithmBySize::at(std::uint64_t bytes) const {
  Algorithm algorithm = Algorithm::ring;
  for (const FromSize& one : by_size_) {
    if (one.from_bytes > bytes) break;
    algorithm = one.algorithm;
  }
  return algorithm;
}

AlgorithmBySize Tuning::algorithms_for(Route route, int ranks) const {
  // The number of ranks whose rules apply.
  std::int32_t of_ranks = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const TuningRule& rule = rules[i];
    if (rule.route != route) continue;
    const bool better = rule.ranks <= ranks ? of_ranks > ranks || rule.ranks > of_ranks
                                            : of_ranks > ranks && rule.ranks < of_ranks;
    if (of_ranks == 0 || better) of_ranks = rule.ranks;
  }
  if (of_ranks == 0 && route == Route::buffers) return algorithms_for(Route::memory, ranks);
  if (of_ranks == 0 && route == Route::hosts) return algorithms_for(Route::network, ranks);
  AlgorithmBySize result;
  for (std::size_t i = 0; i < count; ++i) {
    const TuningRule& rule = rules[i];
    if (rule.route == route && rule.ranks == of_ranks) result.add(rule.from_bytes, rule.algorithm);
  }
  return result;
}

Tuned::Tuned(const Tuning& tuning, int ranks, int hosts) {
  for (const Route route : kRoutes) {
    by_route[Index(route)] = tuning.algorithms_for(route, ranks);
  }
  between_leaders = tuning.algorithms_for(Route::network, hosts);
  if (between_leaders.empty()) {
    between_leaders = default_tuning().algorithms_for(Route::network, hosts);
  }
}

Tuning default_tuning() {
  static constexpr TuningRule kRules[] = {
      {Route::buffers, Algorithm::one_shot, 2, 0},
      {Route::buffers, Algorithm::direct, 2, 2048},
      {Route::buffers, Algorithm::one_shot, 4, 0},
      {Route::buffers, Algorithm::direct, 4, 8192},
      {Route::buffers, Algorithm::one_shot, 8, 0},
      {Route::buffers, Algorithm::direct, 8, 16384},
      {Route::memory, Algorithm::one_shot, 2, 0},
      {Route::memory, Algorithm::ring, 2, 12288},
      {Route::memory, Algorithm::one_shot, 4, 0},
      {Route::memory, Algorithm::ring, 4, 32768},
      {Route::memory, Algorithm::one_shot, 8, 0},
      {Route::memory, Algorithm::hierarchical, 8, 16384},
      {Route::hosts, Algorithm::hierarchical, 4, 0},
      {Route::network, Algorithm::recursive_doubling, 2, 0},
      {Route::network, Algorithm::ring, 2, 65536},
      {Route::network, Algorithm::recursive_doubling, 3, 0},
      {Route::network, Algorithm::ring, 3, 8192},
      {Route::network, Algorithm::naive, 4, 0},
      {Route::network, Algorithm::recursive_doubling, 4, 2048},
      {Route::network, Algorithm::halving_doubling, 4, 4096},
      {Route::network, Algorithm::ring, 4, 524288},
      {Route::network, Algorithm::recursive_doubling, 5, 0},
      {Route::network, Algorithm::ring, 5, 8192},
      {Route::network, Algorithm::naive, 8, 0},
      {Route::network, Algorithm::recursive_doubling, 8, 2304},
      {Route::network, Algorithm::halving_doubling, 8, 8192},
      {Route::network, Algorithm::ring, 8, 524288},
      // The cost model says this: rank 0 handles 2(n - 1) messages, others make log2 n exchanges.
      {Route::network, Algorithm::recursive_doubling, 17, 0},
      {Route::network, Algorithm::halving_doubling, 17, 8192},
      {Route::network, Algorithm::ring, 17, 524288},
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

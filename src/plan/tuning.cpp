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
        "and ring, naive, one_shot, recursive_doubling, halving_doubling, hierarchical, tree, "
        "direct or "
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

Tuned::Tuned(const Tuning& tuning, int ranks, const std::optional<CostPlace>& between_hosts) {
  for (const Route route : kRoutes) {
    by_route_[Index(route)] = tuning.algorithms_for(route, ranks);
  }
  if (!between_hosts) return;
  between_leaders_ = tuning.algorithms_for(Route::network, between_hosts->hosts);
  model_.emplace(*between_hosts);
}

Algorithm Tuned::at(Route route, Collective collective, std::uint64_t bytes) const {
  const AlgorithmBySize& measured = by_route_[Index(route)];
  const bool in_memory = route == Route::buffers || route == Route::memory;
  const bool sums_for_all =
      collective == Collective::all_reduce || collective == Collective::barrier;
  if (in_memory || (sums_for_all && !measured.empty())) {
    return measured.at(bytes, Algorithm::ring);
  }
  if (route == Route::hosts && sums_for_all) return Algorithm::hierarchical;
  return model_ ? model_->at(collective, bytes) : Algorithm::ring;
}

BetweenHosts Tuned::between_hosts(std::uint64_t bytes) const {
  // Several owners along rails are faster than one leader for calls that are larger than this.
  constexpr std::uint64_t kMostByLeaders = std::uint64_t{64} << 10U;
  if (between_leaders_.empty()) return model_ ? model_->between_hosts(bytes) : BetweenHosts{};
  const Algorithm measured = between_leaders_.at(bytes, Algorithm::ring);
  const bool by_leaders = bytes <= kMostByLeaders && (measured == Algorithm::naive ||
                                                      measured == Algorithm::recursive_doubling ||
                                                      measured == Algorithm::halving_doubling);
  if (by_leaders) return {measured, false};
  return {measured == Algorithm::halving_doubling ? measured : Algorithm::ring, true};
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
      {Route::memory, Algorithm::hierarchical, 2, 12288},
      {Route::memory, Algorithm::one_shot, 4, 0},
      {Route::memory, Algorithm::hierarchical, 4, 32768},
      {Route::memory, Algorithm::one_shot, 8, 0},
      {Route::memory, Algorithm::hierarchical, 8, 16384},
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

#include "equal_ranks.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <rondo/errors.hpp>
#include <sstream>
#include <vector>

namespace lenet {
namespace {

// What each rank brings, by rank; texts may have different lengths.
std::vector<std::string> exchange(rondo::Communicator& ranks, const std::string& mine) {
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(ranks.size()));
  const std::array<std::uint64_t, 1> length = {mine.size()};
  ranks.all_gather(length, lengths);
  const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::uint8_t> row(mine.begin(), mine.end());
  row.resize(longest);
  std::vector<std::uint8_t> rows(longest * lengths.size());
  ranks.all_gather(row, rows);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(rank * longest);
    texts.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(lengths[rank]));
  }
  return texts;
}

// "1 and 4" of [0, 1, 0, 0, 1]: the ranks that differ from rank 0.
template <class Value>
std::string ranks_that_differ(const std::vector<Value>& values) {
  std::string ranks;
  for (std::size_t rank = 1; rank < values.size(); ++rank) {
    if (values[rank] != values[0]) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  }
  return ranks;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::uint64_t hash_of(const Samples& samples) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  XXH3_64bits_update(state.get(), samples.labels.data(), samples.labels.size());
  std::vector<float> input(samples.input_elems);
  for (std::size_t sample = 0; sample < samples.count(); ++sample) {
    samples.read_input(sample, input);
    XXH3_64bits_update(state.get(), input.data(), input.size() * sizeof(float));
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace

void require_equal_settings(rondo::Communicator& ranks, const std::string& settings) {
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(ranks.size()));
  const std::array<std::uint64_t, 1> hash = {XXH3_64bits(settings.data(), settings.size())};
  ranks.all_gather(hash, hashes);
  if (ranks_that_differ(hashes).empty()) return;
  std::vector<std::vector<std::string>> of_ranks;
  std::size_t most = 0;
  for (const std::string& text : exchange(ranks, settings)) {
    of_ranks.push_back(lines_of(text));
    most = std::max(most, of_ranks.back().size());
  }
  std::string differences;
  for (std::size_t line = 0; line < most; ++line) {
    std::vector<std::string> lines;
    for (const auto& one : of_ranks) lines.push_back(line < one.size() ? one[line] : "nothing");
    const std::string others = ranks_that_differ(lines);
    if (others.empty()) continue;
    const auto other = std::find_if(lines.begin(), lines.end(),
                                    [&](const std::string& one) { return one != lines[0]; });
    differences += fmt::format("{}--{} on rank 0, --{} on rank {} (ranks that differ: {})",
                               differences.empty() ? "" : "; ", lines[0], *other,
                               other - lines.begin(), others);
  }
  throw rondo::UsageError(fmt::format(
      "the ranks were given different options: {}. Give all ranks the same", differences));
}

void require_equal_data(rondo::Communicator& ranks, const Dataset& data) {
  const std::vector<std::uint64_t> mine = {hash_of(data.train), hash_of(data.test)};
  std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(mine, all);
  std::vector<std::vector<std::uint64_t>> of_ranks;
  for (auto at = all.begin(); at != all.end(); at += static_cast<std::ptrdiff_t>(mine.size())) {
    of_ranks.emplace_back(at, at + static_cast<std::ptrdiff_t>(mine.size()));
  }
  const std::string others = ranks_that_differ(of_ranks);
  if (others.empty()) return;
  throw rondo::UsageError(fmt::format(
      "the ranks have read different samples: ranks {} others than rank 0. Give all ranks the same "
      "files (--data), whole ones",
      others));
}

}  // namespace lenet

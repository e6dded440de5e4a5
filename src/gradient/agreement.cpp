#include "gradient/agreement.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/index.hpp"

namespace rondo::detail {
namespace {

// FNV-1a (Fowler, Noll, Vo): the same on every machine.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  }
  return hash;
}

// The same prime, on words of 64 bits and not on bytes, since parameters are large. Bits are
// rotated so that all of them count: a product carries none downwards.
std::uint64_t hash_of_values(const Parameter& parameter, CopyToHost copy) {
  std::array<std::uint64_t, 8192> words{};
  std::uint64_t hash = 0xCBF29CE484222325U;
  const std::size_t bytes = parameter.count * size_of(parameter.type);
  for (std::size_t at = 0; at < bytes; at += sizeof(words)) {
    const std::size_t now = std::min(sizeof(words), bytes - at);
    words[(now - 1) / sizeof(words[0])] = 0;  // the last word may be filled in part
    copy(words.data(), static_cast<const std::byte*>(parameter.compared) + at, now);
    for (std::size_t i = 0; i * sizeof(words[0]) < now; ++i) {
      hash = std::rotl((hash ^ words[i]) * 0x100000001B3U, 31);
    }
  }
  return hash;
}

// Collective: returns the numbers of all ranks, rank by rank. Each rank gives equally many.
std::vector<std::uint64_t> all_gather_numbers(Communicator& communicator,
                                              const std::vector<std::uint64_t>& mine) {
  std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(communicator.size()));
  Call call;
  call.collective = Collective::all_gather;
  call.in = mine.data();
  call.out = all.data();
  call.count = all.size();
  call.type = DataType::u64;
  communicator.run(call);
  return all;
}

struct Difference {
  std::size_t line = 0;
  int rank = 0;
};

std::optional<Difference> first_difference(const std::vector<std::uint64_t>& hashes,
                                           std::size_t lines) {
  for (std::size_t line = 0; line < lines; ++line) {
    for (std::size_t at = line; at < hashes.size(); at += lines) {
      if (hashes[at] != hashes[line]) return Difference{line, static_cast<int>(at / lines)};
    }
  }
  return std::nullopt;
}

constexpr std::array<std::string_view, 3> kAverageNames = {"sum", "ranks", "samples"};
constexpr std::array<std::string_view, 3> kWireNames = {"exact", "bf16", "f16"};

std::string objection_to(const Parameter& parameter) {
  if (!is_floating(parameter.type)) {
    return fmt::format("is of type {}; gradients are f32, f64, f16 or bf16", name(parameter.type));
  }
  const bool has_values = parameter.value != nullptr || parameter.compared != nullptr;
  if (has_values && parameter.value_count != parameter.count) {
    return fmt::format("has {} values and a gradient of {}", parameter.value_count,
                       parameter.count);
  }
  return {};
}

// Names two parameters whose gradients overlap, found by comparing neighbours in address order;
// else empty.
std::string overlap_among(const std::vector<Parameter>& parameters) {
  std::vector<std::size_t> by_address;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].gradient != nullptr && parameters[i].count > 0) by_address.push_back(i);
  }
  const auto address = [&](std::size_t i) {
    return reinterpret_cast<std::uintptr_t>(parameters[i].gradient);
  };
  std::sort(by_address.begin(), by_address.end(),
            [&](std::size_t a, std::size_t b) { return address(a) < address(b); });
  for (std::size_t i = 1; i < by_address.size(); ++i) {
    const Parameter& before = parameters[by_address[i - 1]];
    if (address(by_address[i - 1]) + before.count * size_of(before.type) > address(by_address[i])) {
      return fmt::format("the gradients of parameters {} ('{}') and {} ('{}') overlap",
                         by_address[i - 1], before.name, by_address[i],
                         parameters[by_address[i]].name);
    }
  }
  return {};
}

// Returns why no reducer can be made with these arguments, whatever those of the other ranks are;
// empty if one can.
std::string objection_to(const std::vector<Parameter>& parameters, const GradientOptions& options) {
  if (parameters.empty()) return "there are no parameters";
  if (static_cast<std::size_t>(options.average) >= kAverageNames.size()) {
    return "GradientOptions::average is not an Average";
  }
  if (static_cast<std::size_t>(options.wire) >= kWireNames.size()) {
    return "GradientOptions::wire is not a WireType";
  }
  if (options.algorithm && static_cast<int>(*options.algorithm) >= kAlgorithmCount) {
    return "GradientOptions::algorithm is not an Algorithm";
  }
  if (options.timeout && options.timeout->count() <= 0) {
    return fmt::format("GradientOptions::timeout is {} ms; it must be above 0",
                       options.timeout->count());
  }
  if (parameters.size() > 0xFFFFFFFFU) return "there are more parameters than 32 bits count";
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string objection = objection_to(parameters[i]);
    if (!objection.empty()) {
      return fmt::format("parameter {} ('{}') {}", i, parameters[i].name, objection);
    }
  }
  if (options.layout_independent && options.algorithm && *options.algorithm != Algorithm::ring &&
      *options.algorithm != Algorithm::automatic) {
    return "layout_independent works with the ring algorithm only";
  }
  if (options.hook && options.wire != WireType::exact) {
    return "with a hook the wire must be WireType::exact, since the hook decides in which type it "
           "sends";
  }
  return overlap_among(parameters);
}

std::string text_of_values(const Parameter& parameter, CopyToHost copy) {
  if (parameter.value != nullptr) return ", with values that take rank 0's";
  if (parameter.compared == nullptr || parameter.count == 0) return {};
  return fmt::format(", with values to compare, whose hash is {:016x}",
                     hash_of_values(parameter, copy));
}

// A line for each option and parameter that must be equal.
std::vector<std::string> lines_of(const std::vector<Parameter>& parameters,
                                  const GradientOptions& options, CopyToHost copy) {
  std::vector<std::string> lines = {
      fmt::format("GradientOptions::bucket_bytes = {}", options.bucket_bytes),
      fmt::format("GradientOptions::first_bucket_bytes = {}", options.first_bucket_bytes),
      fmt::format("GradientOptions::average = {}", kAverageNames[Index(options.average)]),
      fmt::format("GradientOptions::local = {}", options.local == LocalGradient::mean_of_samples
                                                     ? "mean_of_samples"
                                                     : "sum_of_samples"),
      fmt::format("GradientOptions::wire = {}", kWireNames[Index(options.wire)]),
      fmt::format("GradientOptions::hook {}", options.hook ? "set" : "not set"),
      fmt::format("GradientOptions::algorithm = {}",
                  options.algorithm ? name(*options.algorithm) : "the communicator's"),
      fmt::format("GradientOptions::allow_unused = {}", options.allow_unused),
      fmt::format("GradientOptions::order_by_arrival = {}", options.order_by_arrival),
      fmt::format("GradientOptions::layout_independent = {}", options.layout_independent),
      fmt::format("GradientOptions::overlap = {}", options.overlap)};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    lines.push_back(fmt::format("parameter {} '{}' of {} {}{}", i, parameter.name, parameter.count,
                                name(parameter.type), text_of_values(parameter, copy)));
  }
  return lines;
}

}  // namespace

std::string shared_text(Communicator& communicator, std::string text, int root) {
  std::array<std::uint64_t, 1> length = {text.size()};
  communicator.broadcast(length, root);
  std::vector<std::uint8_t> letters(length[0]);
  if (communicator.rank() == root) std::copy(text.begin(), text.end(), letters.begin());
  communicator.broadcast(letters, root);
  return {letters.begin(), letters.end()};
}

void require_equal_lines(Communicator& communicator, const std::string& objection,
                         const std::vector<std::string>& lines) {
  const std::vector<std::uint64_t> heads =
      all_gather_numbers(communicator, {objection.empty() ? 0U : 1U, lines.size()});
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < heads.size() / 2; ++rank) {
    if (heads[2 * rank] != 0) {
      throw UsageError(shared_text(communicator, objection, static_cast<int>(rank)));
    }
    most = std::max<std::size_t>(most, heads[2 * rank + 1]);
  }
  std::vector<std::uint64_t> hashes(most);
  std::transform(lines.begin(), lines.end(), hashes.begin(), hash_of);
  const auto different = first_difference(all_gather_numbers(communicator, hashes), most);
  if (!different) return;
  const std::string mine =
      different->line < lines.size() ? lines[different->line] : std::string("no more parameters");
  const std::string first = shared_text(communicator, mine, 0);
  const std::string other = shared_text(communicator, mine, different->rank);
  throw UsageError(
      fmt::format("GradientReducer: rank 0 has {}; rank {} has {}. Give all ranks the same: const "
                  "values on all ranks, or on none; const ones are the same if they come from one "
                  "seed or checkpoint, others take rank 0's",
                  first, different->rank, other));
}

void require_same_model(Communicator& communicator, const std::vector<Parameter>& parameters,
                        const GradientOptions& options, std::string objection, CopyToHost copy) {
  std::string first = objection_to(parameters, options);
  if (first.empty()) first = std::move(objection);
  if (!first.empty()) {
    first = fmt::format("rank {}: GradientReducer: {}", communicator.rank(), first);
  }
  require_equal_lines(
      communicator, first,
      first.empty() ? lines_of(parameters, options, copy) : std::vector<std::string>());
}

}  // namespace rondo::detail

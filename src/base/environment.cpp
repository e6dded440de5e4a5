#include "base/environment.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/names.hpp"

namespace rondo::detail {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::chrono::milliseconds parse_timeout(std::string_view text) {
  constexpr double kLongestSeconds = 1e9;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || !(seconds > 0) ||
      seconds > kLongestSeconds) {
    throw UsageError(fmt::format(
        "RONDO_TIMEOUT is '{}'; it must be a number of seconds above 0, such as 30 or 0.5", text));
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1e3)));
}

Algorithm parse_algorithm(std::string_view text) {
  if (const auto algorithm = algorithm_named(text)) return *algorithm;
  throw UsageError(
      fmt::format("RONDO_ALGO is '{}'; it must be one of {}", text, names_of_algorithms()));
}

}  // namespace

std::optional<std::chrono::milliseconds> environment_timeout() {
  const auto text = variable("RONDO_TIMEOUT");
  return text ? std::optional(parse_timeout(*text)) : std::nullopt;
}

std::optional<Algorithm> environment_algorithm() {
  const auto text = variable("RONDO_ALGO");
  return text ? std::optional(parse_algorithm(*text)) : std::nullopt;
}

std::optional<std::size_t> environment_arena_bytes() {
  const auto text = variable("RONDO_ARENA_BYTES");
  if (!text) return std::nullopt;
  std::size_t bytes = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), bytes);
  if (error != std::errc{} || end != text->data() + text->size() || bytes == 0) {
    throw UsageError(fmt::format(
        "RONDO_ARENA_BYTES is '{}'; it must be a number of bytes, such as 1073741824", *text));
  }
  return bytes;
}

int environment_device_connections() {
  constexpr int kDefault = 8;
  constexpr int kMost = 32;
  const std::string text = variable("CUDA_DEVICE_MAX_CONNECTIONS").value_or("");
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && value > 0 ? std::min(value, kMost) : kDefault;
}

std::optional<std::string> environment_tuning() { return variable("RONDO_TUNING"); }

std::optional<std::string> environment_secret() { return variable("RONDO_SECRET"); }

bool environment_allows_short_slices() {
  static const bool allows = variable("RONDO_SHORT_SLICES") != "0";
  return allows;
}

std::optional<std::string> environment_interface() { return variable("RONDO_INTERFACE"); }

std::optional<std::string> environment_of_others(const char* name) { return variable(name); }

std::optional<std::string> environment_of_launchers(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<std::string> environment_log() { return variable("RONDO_LOG"); }

}  // namespace rondo::detail

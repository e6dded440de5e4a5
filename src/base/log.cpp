#include "base/log.hpp"

#include <unistd.h>

#include <mutex>
#include <optional>

#include "base/environment.hpp"
#include "base/write_signals.hpp"

namespace rondo {
namespace detail {
namespace {

// The hook when RONDO_LOG is set: the user asked for messages, so they go to standard error.
void write_to_standard_error(LogLevel level, std::string_view text) {
  constexpr std::string_view kNames[] = {"info", "warning"};
  const std::string line = fmt::format("rondo {}: {}\n", kNames[static_cast<int>(level)], text);
  const WriteSignalsHeld held;  // it may be a file, or a pipe
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

struct Sink {
  std::mutex mutex;
  LogHook hook;
  LogLevel lowest = LogLevel::info;

  Sink() {
    const std::optional<std::string> setting = environment_log();
    if (!setting) return;
    hook = write_to_standard_error;
    if (*setting == "warning") lowest = LogLevel::warning;
    if (*setting != "warning" && *setting != "info") {
      hook(LogLevel::warning, "RONDO_LOG is neither info nor warning; taken as info");
    }
  }
};

// Never destroyed: a static communicator may log after the library's static objects would have been
// destroyed.
Sink& sink() {
  static Sink& instance = *new Sink;
  return instance;
}

}  // namespace

bool log_enabled(LogLevel level) noexcept {
  Sink& target = sink();
  const std::lock_guard lock(target.mutex);
  return target.hook != nullptr && level >= target.lowest;
}

void log_text(LogLevel level, const std::string& text) noexcept {
  Sink& target = sink();
  const std::lock_guard lock(target.mutex);
  if (target.hook == nullptr || level < target.lowest) return;
  try {
    target.hook(level, text);
  } catch (...) {  // a hook that throws must not change what the collective does
    target.hook = nullptr;
  }
}

}  // namespace detail

void set_log_hook(LogHook hook, LogLevel lowest) {
  detail::Sink& target = detail::sink();
  const std::lock_guard lock(target.mutex);
  target.hook = std::move(hook);
  target.lowest = lowest;
}

}  // namespace rondo

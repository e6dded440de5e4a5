// Sends messages to the log hook.
#pragma once

#include <string>
#include <utility>

#include <fmt/format.h>

#include <rondo/log.hpp>

namespace rondo::detail {

// Whether a message of this level would reach a hook.
bool log_enabled(LogLevel level) noexcept;
void log_text(LogLevel level, const std::string& text) noexcept;

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_text(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace rondo::detail

/// \file
/// The one logging hook. Rondo is silent unless a hook is set or RONDO_LOG asks for messages.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <rondo/export.hpp>

namespace rondo {

/// `info`: how ranks were joined, and why so. `warning`: what went wrong.
enum class LogLevel : std::uint8_t { info, warning };

/// Receives one message without a line end. May be called from any thread, one call at a time;
/// it must not call into Rondo.
using LogHook = std::function<void(LogLevel, std::string_view)>;

/// Sends messages of `lowest` level and above to `hook`, in place of where they went before; an
/// empty hook silences the library. Without this call, RONDO_LOG=info|warning makes messages of
/// that level and above go to standard error. Thread-safe.
RONDO_API void set_log_hook(LogHook hook, LogLevel lowest = LogLevel::info);

}  // namespace rondo

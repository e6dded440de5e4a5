// Calls that the library makes as a part of its own work.
#pragma once

#include <chrono>
#include <optional>

#include <rondo/call.hpp>

namespace rondo::detail {

// While it lives, the blocking calls of this thread on host memory are a part of `function`, which
// the program has called: errors name that function, and not calls that the program has never made;
// and `timeout` holds for those that have none of their own. Where one function uses another, the
// outer one counts.
class WithinFunction {
 public:
  explicit WithinFunction(PartOf function,
                          std::optional<std::chrono::milliseconds> timeout = std::nullopt)
      : before_(current()) {
    // One that is not above 0 is refused by the function itself.
    if (timeout && timeout->count() <= 0) timeout.reset();
    if (before_.function == PartOf::nothing) current() = {function, timeout};
  }
  WithinFunction(const WithinFunction&) = delete;
  WithinFunction& operator=(const WithinFunction&) = delete;
  ~WithinFunction() { current() = before_; }

  // The same call as a part of the function; nothing if this thread is in none.
  static std::optional<Call> as_part(const Call& call) {
    const Current& now = current();
    if (now.function == PartOf::nothing) return std::nullopt;
    Call part = call;
    part.part_of = now.function;
    if (!part.options.timeout) part.options.timeout = now.timeout;
    return part;
  }

 private:
  struct Current {
    PartOf function = PartOf::nothing;
    std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  };
  static Current& current() {
    thread_local Current current;
    return current;
  }

  Current before_;
};

}  // namespace rondo::detail

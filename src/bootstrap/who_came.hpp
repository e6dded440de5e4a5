// Who came to rank 0 and did not become a rank, for the error that names the ranks that are
// missing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace rondo::detail {

class WhoCame {
 public:
  // Returns false if it keeps no note: each reason is kept once, and few in all, since strangers
  // may be many.
  [[nodiscard]] bool add(const std::string& name, const std::string& why) {
    const bool known = std::any_of(notes_.begin(), notes_.end(),
                                   [&](const std::string& note) { return note.ends_with(why); });
    if (known || notes_.size() == kMost) return false;
    notes_.push_back(fmt::format("{}: {}", name, why));
    return true;
  }

  // Returns ". Who came: ...", or an empty text.
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const std::string& note : notes_) {
      text += fmt::format("{}{}", text.empty() ? ". Who came: " : "; ", note);
    }
    return text;
  }

 private:
  static constexpr std::size_t kMost = 4;
  std::vector<std::string> notes_;
};

}  // namespace rondo::detail

// A control group that limits memory.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/control_group.hpp"

namespace rondo::test {

class MemoryGroup {
 public:
  [[nodiscard]] bool made() const { return group_.made(); }
  // Each of these is false if the system refuses it.
  [[nodiscard]] bool enter() const { return group_.enter(); }
  [[nodiscard]] bool lift_limit() const { return group_.write(kLimit, "-1"); }
  // So much, beside what is used.
  [[nodiscard]] bool leave_room_for(std::uint64_t bytes) const {
    const auto used = group_.read<std::uint64_t>("memory.usage_in_bytes");
    return used != 0 && group_.write(kLimit, std::to_string(used + bytes));
  }

 private:
  static constexpr const char* kLimit = "memory.limit_in_bytes";
  ControlGroupOfTest group_{"memory", kLimit};
};

}  // namespace rondo::test

// Remembers which process made an object that has a thread or represents a rank.
#pragma once

#include <unistd.h>

#include <memory>
#include <utility>

namespace rondo::detail {

// A child forked from that process inherits the memory of such an object, but not its thread, and
// is not the rank: it must leave the object as it is.
class OwnerProcess {
 public:
  [[nodiscard]] bool is_this() const { return id_ == ::getpid(); }
  // In a forked child nothing may be destroyed, so the object that this is a part of holds the last
  // reference to itself.
  void keep(std::shared_ptr<void> whole) { whole_ = std::move(whole); }

 private:
  pid_t id_ = ::getpid();
  std::shared_ptr<void> whole_;
};

// To be called before `object` is destroyed: in a forked child it is released, so that nothing is
// destroyed.
template <class T>
void keep_if_inherited(std::unique_ptr<T>& object) {
  if (object != nullptr && !object->owner_process.is_this()) static_cast<void>(object.release());
}

// Does the same for one of several owners.
template <class T>
void keep_if_inherited(std::shared_ptr<T>& object) {
  if (object == nullptr || object->owner_process.is_this()) return;
  T& whole = *object;
  whole.owner_process.keep(std::move(object));
}

}  // namespace rondo::detail

// Knows which members of a communicator have ended, or are on hosts that have vanished;
// net/host_links.hpp says how that is found out.
#pragma once

#include <memory>
#include <vector>

#include "base/file_descriptor.hpp"
#include "net/host_links.hpp"

namespace rondo::detail {

class HostWatch {
 public:
  // `processes`: by member.
  explicit HostWatch(std::vector<ProcessName> processes);
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;
  ~HostWatch();

  // Call these two before any other thread uses this object. Both throw what HostLinks throws.
  // Whether another communicator has a link to the process of `member`, which this one holds from
  // now on.
  bool find_link(int member);
  // Adds a link to a member that has none.
  void add_link(int member, FileDescriptor socket);

  struct Gone {
    int member = 0;
    bool host_vanished = false;  // else its process has ended
    Clock::time_point since;
  };
  // Returns the members that are gone, in the order in which this process noticed them. Any thread
  // may call.
  [[nodiscard]] std::vector<Gone> gone() const;

 private:
  HostLinks& all();

  std::vector<ProcessName> processes_;
  std::shared_ptr<HostLinks> all_;  // null where no host is watched
  std::vector<std::shared_ptr<HostLink>> held_;
};

}  // namespace rondo::detail

#include "net/ucx_exchange.hpp"

#include <sched.h>

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/giving_up.hpp"

namespace rondo::detail {
namespace {

constexpr const char* kInterfaces =
    "UCX uses the network interfaces of UCX_NET_DEVICES or RONDO_INTERFACE";

[[noreturn]] void throw_missing(const Messenger& messenger, const std::vector<Pending>& pending) {
  std::string missing;
  int last = kAnyPeer;
  for (const Pending& one : pending) {
    if (std::exchange(last, one.peer) == one.peer) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", one.peer);
  }
  throw TransportError(fmt::format(
      "rank {} has waited {} ms for UCX to connect it to ranks {}; can these hosts reach each "
      "other, and those ranks all others, at any port, or at those of UCX_TCP_PORT_RANGE? {}",
      messenger.rank(), messenger.patience().count(), missing, kInterfaces));
}

}  // namespace

void end_ucx_exchange(Messenger& messenger, std::vector<Pending>& pending,
                      Clock::time_point give_up, std::optional<ConnectionLost> lost) {
  std::vector<std::size_t> ended;
  for (;;) {
    std::erase_if(pending, [](const Pending& one) { return !one.operation->under_way; });
    if (lost && (pending.empty() || is_over(give_up))) {
      throw ConnectionLost(lost->peer(), fmt::format("{}. {}", lost->what(), kInterfaces));
    }
    if (pending.empty()) return;
    try {
      messenger.look(pending, ended);
    } catch (const ConnectionLost& failure) {
      if (!lost) lost = failure;
      std::erase_if(pending, [&](const Pending& one) { return one.peer == failure.peer(); });
      continue;
    }
    if (!ended.empty()) continue;
    if (is_over(give_up)) throw_missing(messenger, pending);
    ::sched_yield();
  }
}

}  // namespace rondo::detail

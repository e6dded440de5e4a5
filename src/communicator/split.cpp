#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rondo/communicator.hpp>
#include <rondo/errors.hpp>

#include "base/index.hpp"
#include "base/names.hpp"
#include "bootstrap/together.hpp"
#include "communicator/group_bootstrap.hpp"
#include "communicator/state.hpp"
#include "joining/handover.hpp"
#include "joining/wire.hpp"

namespace rondo {
namespace detail {
namespace {

struct Membership {
  bool joins = false;
  std::int32_t color = 0;
  std::int32_t key = 0;
};

// The ranks of `rank`'s group, in the order that they have there; none if `rank` wants no group.
std::vector<int> members_with(const std::vector<Membership>& memberships, int rank) {
  const auto membership_of = [&](int one) { return memberships[Index(one)]; };
  std::vector<int> members;
  for (int one = 0; one < static_cast<int>(memberships.size()); ++one) {
    const bool both_join = membership_of(rank).joins && membership_of(one).joins;
    if (both_join && membership_of(one).color == membership_of(rank).color) members.push_back(one);
  }
  std::sort(members.begin(), members.end(), [&](int a, int b) {
    return std::pair(membership_of(a).key, a) < std::pair(membership_of(b).key, b);
  });
  return members;
}

std::string list_of(const std::vector<int>& ranks) {
  std::string list;
  for (const int rank : ranks) list += fmt::format("{}{}", list.empty() ? "" : ", ", rank);
  return list;
}

// Ranks that are threads: the first of the group makes the wirings of all, and each takes its own.
Wiring wire_threads(GroupBootstrap& group, Handover& handover, const CommunicatorOptions& options) {
  std::uint64_t number = 0;
  together(group, [&] {
    if (group.rank() != 0) return;
    number = handover.leave(
        std::make_shared<std::vector<Wiring>>(wire_local_group(group.size(), options)));
  });
  number = group.exchange(number)[0];
  Wiring mine = std::move((*handover.find(number))[Index(group.rank())]);
  group.exchange(0);  // all have taken theirs
  if (group.rank() == 0) handover.forget(number);
  return mine;
}

// Makes this rank's wiring for the new communicator of `members`: ranks of `parent`, in their new
// order. Takes the parent's network and what it has measured, and leaves the parent as it is.
// Collective over the members. Throws UsageError, TransportError, MemberHasLeft.
Wiring wire_members(GroupBootstrap& group, CommunicatorState& parent,
                    const std::vector<int>& members) {
  const Links& links = parent.wiring.links;
  if (links.handover != nullptr) return wire_threads(group, *links.handover, parent.options);
  CommunicatorOptions options = parent.options;
  // Without a pump all ranks of the parent share memory, and no network could be opened here.
  if (links.pump == nullptr) options.carrier = CarrierChoice::shm;
  // Takes every link for the slowest one that the parent has measured.
  const auto probe = [&](int next, int) {
    return next == kNoLink ? LinkFacts{} : links.slowest_link.value_or(LinkFacts{});
  };
  const auto make_pump = [&](PumpEdges edges) {
    return links.pump->among(members, std::move(edges));
  };
  NetworkCarrier network{.carrier = links.network, .probe = probe, .make_pump = make_pump};
  const Waiting& waiting = parent.wiring.waiting;
  network.drive_program = waiting.drive_program;
  network.hosts = waiting.hosts;
  if (waiting.hosts != nullptr) {
    for (const int member : members) {
      network.watched_as.push_back(waiting.watched_as[Index(member)]);
    }
  }
  return wire_processes(group, options, {}, network);
}

}  // namespace
}  // namespace detail

std::optional<Communicator> Communicator::split(std::optional<int> color, int key) {
  return split_for(detail::PartOf::split, color, key);
}

Communicator Communicator::duplicate() {
  return std::move(*split_for(detail::PartOf::duplicate, 0, rank()));
}

std::optional<Communicator> Communicator::split_for(detail::PartOf function,
                                                    std::optional<int> color, int key) {
  using namespace detail;
  state_->refuse_if_held(name_of(function), user_);
  const Membership mine{color.has_value(), color.value_or(0), key};
  const std::vector<int> members =
      members_with(CommunicatorBootstrap(*this, function).exchange(mine), rank());
  GroupBootstrap group(*this, members, function);
  group.set_patience(state_->defaults.timeout);
  std::unique_ptr<CommunicatorState> made;
  std::exception_ptr error;
  try {
    if (color) {
      Wiring wiring = wire_members(group, *state_, members);
      // The other ranks use these cores, too.
      wiring.waiting.crowded |= state_->wiring.waiting.crowded;
      wiring.waiting.short_of_quota |= state_->wiring.waiting.short_of_quota;
      made =
          std::make_unique<CommunicatorState>(std::move(wiring), state_->defaults, state_->options);
    }
  } catch (const MemberHasLeft& failure) {
    error = std::make_exception_ptr(
        TransportError(fmt::format("{}: {}", name_of(function), failure.what())));
  } catch (const TransportError& failure) {
    error = std::make_exception_ptr(TransportError(
        fmt::format("{}: {}. (Ranks in this text are numbers in the new communicator, which was "
                    "to consist of ranks {} of this one, in that order)",
                    name_of(function), failure.what(), list_of(members))));
  } catch (...) {
    error = std::current_exception();
  }
  // The other groups may not be through; if this communicator has failed, this throws why. What
  // this rank has met first says more.
  try {
    group.leave();
  } catch (const Error&) {
    if (!error) throw;
  }
  if (error) std::rethrow_exception(error);
  if (made == nullptr) return std::nullopt;
  return Communicator(std::move(made));
}

}  // namespace rondo

#include "communicator/group_bootstrap.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {

GroupBootstrap::GroupBootstrap(Communicator& parent, std::vector<int> members, PartOf function)
    : ranks_(parent), parent_(parent, function), members_(std::move(members)) {
  rank_ = static_cast<int>(std::find(members_.begin(), members_.end(), parent.rank()) -
                           members_.begin());
}

std::size_t GroupBootstrap::longest(const std::vector<Contribution>& all) {
  std::uint64_t most = 0;
  for (const Contribution& one : all) most = std::max(most, one.bytes);
  return most;
}

std::vector<std::byte> GroupBootstrap::exchange_many(const void* mine, std::size_t mine_bytes,
                                                     std::size_t bytes) {
  if (bytes <= sizeof(Contribution::few)) return {};
  std::vector<std::byte> part(bytes);
  if (mine_bytes > 0) std::memcpy(part.data(), mine, mine_bytes);
  std::vector<std::byte> parts(bytes * static_cast<std::size_t>(parent_.size()));
  parent_.all_gather(part.data(), parts.data(), bytes);
  return parts;
}

template <class Body>
void GroupBootstrap::in_round(Body body) {
  try {
    body();
  } catch (const Error&) {
    throw;  // the parent has failed
  } catch (const std::exception& error) {
    ranks_.abort(fmt::format("rank {} failed while communicators were split off: {}", ranks_.rank(),
                             error.what()));
    throw;
  }
}

void GroupBootstrap::all_gather(const void* mine, void* all, std::size_t bytes) {
  Contribution brought;
  brought.bytes = bytes;
  if (bytes > 0 && bytes <= brought.few.size()) std::memcpy(brought.few.data(), mine, bytes);
  std::vector<Contribution> announced;
  std::vector<std::byte> many;
  in_round([&] {
    announced = parent_.exchange(brought);
    many = exchange_many(mine, bytes, longest(announced));
  });
  const std::size_t stride = longest(announced);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto member = static_cast<std::size_t>(members_[i]);
    if (announced[member].leaves) {
      throw MemberHasLeft(fmt::format("rank {} could not join; its own error says why", member));
    }
    if (bytes == 0) continue;
    const std::byte* from =
        many.empty() ? announced[member].few.data() : many.data() + member * stride;
    std::memcpy(static_cast<std::byte*>(all) + i * bytes, from, bytes);
  }
}

void GroupBootstrap::leave() {
  Contribution leaving;
  leaving.leaves = true;
  bool all_leave = false;
  while (!all_leave) {
    in_round([&] {
      const std::vector<Contribution> announced = parent_.exchange(leaving);
      all_leave = std::all_of(announced.begin(), announced.end(),
                              [](const Contribution& one) { return one.leaves; });
      exchange_many(nullptr, 0, longest(announced));
    });
  }
}

}  // namespace rondo::detail

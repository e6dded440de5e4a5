#include "net/messenger.hpp"

namespace rondo::detail {

bool Messenger::has_ended(Operation& operation, const char* what, int peer) {
  if (!operation.under_way) return true;
  pending_.assign(1, {&operation, what, peer});
  look(pending_, ended_);
  return !operation.under_way;
}

bool Messenger::have_ended(std::vector<Operation>& operations, const char* what,
                           std::span<const int> peers) {
  pending_.clear();
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const int peer = peers.empty() ? kAnyPeer : peers[i];
    if (operations[i].under_way) pending_.push_back({&operations[i], what, peer});
  }
  if (pending_.empty()) return true;
  look(pending_, ended_);
  return ended_.size() == pending_.size();
}

}  // namespace rondo::detail

#include "carrier/messenger.hpp"

namespace rondo::detail {

bool Messenger::has_ended(Operation& operation, const char* what, int peer) {
  if (!operation.under_way) return true;
  pending_.assign(1, {&operation, what, peer});
  look(pending_, ended_);
  return !operation.under_way;
}

bool Messenger::have_ended(std::vector<Operation>& operations, const char* what) {
  pending_.clear();
  for (Operation& operation : operations) {
    if (operation.under_way) pending_.push_back({&operation, what, kAnyPeer});
  }
  if (pending_.empty()) return true;
  look(pending_, ended_);
  return ended_.size() == pending_.size();
}

}  // namespace rondo::detail

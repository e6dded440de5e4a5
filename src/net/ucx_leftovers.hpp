// What still comes by UCX for messengers that are destroyed. A rank destroys its messenger when it
// needs it no more, while others may still send: the message that they destroy theirs, and messages
// that nobody receives. UCX would keep these for ever, in a list that it searches for each message.
//
// Each rank sends all others, as its last message to them, that it destroys its messenger. So a
// destroyed messenger leaves here a receive for that message of each rank that has not sent it yet.
// When it has come, whatever else that rank has sent for the messenger has come, too, and is thrown
// away.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <vector>

namespace rondo::detail {

class UcxLeftovers {
 public:
  // `tag` has the messenger's and the sender's numbers, and `mask` those bits of a tag.
  struct Leftover {
    ucp_tag_t tag = 0;
    ucp_tag_t mask = 0;
    void* parting = nullptr;  // the receive of the sender's last message; null: it has come
  };
  // All functions are called under the worker's lock.
  // `may_come`: the sender is not lost.
  void add(ucp_worker_h worker, const Leftover& leftover, bool may_come);
  // Throws away what has come since it was called last.
  void sweep(ucp_worker_h worker);
  // Before the worker is destroyed.
  void give_up(ucp_worker_h worker);

 private:
  std::vector<Leftover> waiting_;
};

}  // namespace rondo::detail

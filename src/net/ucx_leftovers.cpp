#include "net/ucx_leftovers.hpp"

#include <algorithm>

#include "net/ucx_library.hpp"

namespace rondo::detail {
namespace {

// Receives into no memory: UCX then drops the contents, and tells the sender of a long message that
// it need not send them.
void throw_away(ucp_worker_h worker, const UcxLeftovers::Leftover& leftover) {
  const ucp_request_param_t plain{};
  ucp_tag_recv_info_t facts{};
  while (const ucp_tag_message_h message =
             ucx().tag_probe_nb(worker, leftover.tag, leftover.mask, 1, &facts)) {
    void* request = ucx().tag_msg_recv_nbx(worker, nullptr, 0, message, &plain);
    if (UCS_PTR_IS_PTR(request)) ucx().request_free(request);
  }
}

}  // namespace

void UcxLeftovers::add(ucp_worker_h worker, const Leftover& leftover, bool may_come) {
  if (leftover.parting != nullptr && !may_come) {
    ucx().request_cancel(worker, leftover.parting);
    ucx().request_free(leftover.parting);
  }
  if (leftover.parting == nullptr || !may_come) {
    throw_away(worker, leftover);
  } else {
    waiting_.push_back(leftover);
  }
}

void UcxLeftovers::sweep(ucp_worker_h worker) {
  std::erase_if(waiting_, [&](const Leftover& leftover) {
    if (ucx().request_check_status(leftover.parting) == UCS_INPROGRESS) return false;
    ucx().request_free(leftover.parting);
    throw_away(worker, leftover);
    return true;
  });
}

void UcxLeftovers::give_up(ucp_worker_h worker) {
  for (const Leftover& leftover : waiting_) {
    ucx().request_cancel(worker, leftover.parting);
    ucx().request_free(leftover.parting);
  }
  waiting_.clear();
}

}  // namespace rondo::detail

// Joins the ranks of a process group through torch's store.
#pragma once

#include <chrono>

#include <rondo/communicator.hpp>

#include "torch_types.hpp"

namespace rondo::torch_backend {

// Rank 0 says in the store where the ranks meet, and by which secret. Each rank waits for the
// others for at most `timeout`, which is also that of calls. Throws what rondo::from_store() does.
Communicator join(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                  std::chrono::milliseconds timeout);

}  // namespace rondo::torch_backend

// The collectives of MPI that reduce.
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "adapters/mpi/calls.hpp"

namespace rondo::mpi_programs {
namespace {

// A call that reduces, without its buffers.
class ReducingCall {
 public:
  ReducingCall(Collective collective, std::size_t count, MPI_Datatype type, MPI_Op op)
      : reducing_(reducing_of(type, op)) {
    call.collective = collective;
    call.count = count;
    if (!reducing_) return;
    call.type = reducing_->type;
    call.op = reducing_->op;
    if (reducing_->by_mpi) call.reduction = &*reducing_->by_mpi;
  }
  ReducingCall(const ReducingCall&) = delete;
  ReducingCall& operator=(const ReducingCall&) = delete;

  [[nodiscard]] bool possible() const { return reducing_.has_value(); }
  [[nodiscard]] bool of_program() const { return reducing_->of_program; }
  [[nodiscard]] std::size_t element() const { return element_bytes(call); }
  [[nodiscard]] std::size_t bytes() const { return call.count * element(); }

  Call call;

 private:
  std::optional<Reducing> reducing_;
};

// The part of each rank goes to the beginning of its `out`, also where all of `out` is the input.
void reduce_scatter(Communicator& comm, ReducingCall& made, const void* in, void* out,
                    std::size_t own_elems) {
  made.call.out = out;
  if (in != MPI_IN_PLACE) {
    made.call.in = in;
    comm.run(made.call);
    return;
  }
  std::vector<std::byte> own(own_elems * made.element());
  made.call.in = out;
  made.call.out = own.data();
  comm.run(made.call);
  if (!own.empty()) std::memcpy(out, own.data(), own.size());
}

// What a request of MPI_Iallreduce leads to.
struct Background {
  int code = MPI_SUCCESS;

  static int query(void* state, MPI_Status* status) {
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return static_cast<Background*>(state)->code;
  }
  static int free(void* state) {
    delete static_cast<Background*>(state);
    return MPI_SUCCESS;
  }
  static int cancel(void* /*state*/, int /*complete*/) { return MPI_SUCCESS; }
};

// Starts a call whose request is complete when it has ended, with or without an error.
int start(Group& group, MPI_Comm comm, const Call& call, MPI_Request* request) {
  auto state = std::make_unique<Background>();
  Background* const given = state.get();
  const int code =
      PMPI_Grequest_start(Background::query, Background::free, Background::cancel, given, request);
  if (code != MPI_SUCCESS) return code;
  static_cast<void>(state.release());  // to the request
  try {
    group.completions().add(group.communicator().run_async(call), *request,
                            [given](int ended_with) { given->code = ended_with; });
    return MPI_SUCCESS;
  } catch (const std::exception& error) {
    group.communicator().abort(error.what());
    given->code = code_for(error);
    PMPI_Grequest_complete(*request);
    return report(comm, error);
  }
}

}  // namespace
}  // namespace rondo::mpi_programs

using namespace rondo::mpi_programs;  // NOLINT(google-build-using-namespace): of functions of MPI
using rondo::Collective;
using rondo::Communicator;

extern "C" {

RONDO_OF_MPI int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                               MPI_Comm comm) {
  return guarded(comm, [&]() -> int {
    const auto hand_on = [&] { return PMPI_Allreduce(in, out, count, type, op, comm); };
    Group* const group = Group::of(comm);
    if (group == nullptr || count < 0) return hand_on();
    ReducingCall made(Collective::all_reduce, static_cast<std::size_t>(count), type, op);
    if (!made.possible()) return noted(Function::all_reduce, hand_on);
    return make(Function::all_reduce, comm, *group, made.bytes(), hand_on, [&](Communicator& to) {
      made.call.in = in == MPI_IN_PLACE ? out : in;
      made.call.out = out;
      to.run(made.call);
    });
  });
}

RONDO_OF_MPI int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                                MPI_Comm comm, MPI_Request* request) {
  return guarded(comm, [&]() -> int {
    const auto hand_on = [&] { return PMPI_Iallreduce(in, out, count, type, op, comm, request); };
    Group* const group = Group::of(comm);
    if (group == nullptr || count < 0) return hand_on();
    ReducingCall made(Collective::all_reduce, static_cast<std::size_t>(count), type, op);
    // The program may free its operation while the call goes on.
    if (!made.possible() || made.of_program() || !group->takes_in_background(made.bytes())) {
      return noted(Function::iall_reduce, hand_on);
    }
    const NotedCall noted_call(Function::iall_reduce, true, made.bytes());
    const Inside inside;
    made.call.in = in == MPI_IN_PLACE ? out : in;
    made.call.out = out;
    return start(*group, comm, made.call, request);
  });
}

RONDO_OF_MPI int MPI_Reduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                            int root, MPI_Comm comm) {
  return guarded(comm, [&]() -> int {
    const auto hand_on = [&] { return PMPI_Reduce(in, out, count, type, op, root, comm); };
    Group* const group = Group::of(comm);
    if (group == nullptr || count < 0 || !group->has(root)) return hand_on();
    ReducingCall made(Collective::reduce, static_cast<std::size_t>(count), type, op);
    if (!made.possible()) return noted(Function::reduce, hand_on);
    return make(Function::reduce, comm, *group, made.bytes(), hand_on, [&](Communicator& to) {
      made.call.in = in == MPI_IN_PLACE ? out : in;
      made.call.out = group->rank() == root ? out : nullptr;
      made.call.root = root;
      to.run(made.call);
    });
  });
}

RONDO_OF_MPI int MPI_Reduce_scatter(const void* in, void* out, const int* counts, MPI_Datatype type,
                                    MPI_Op op, MPI_Comm comm) {
  return guarded(comm, [&]() -> int {
    const auto hand_on = [&] { return PMPI_Reduce_scatter(in, out, counts, type, op, comm); };
    Group* const group = Group::of(comm);
    if (group == nullptr || counts == nullptr) return hand_on();
    std::vector<std::size_t> elems;
    for (int rank = 0; rank < group->size(); ++rank) {
      if (counts[rank] < 0) return hand_on();
      elems.push_back(static_cast<std::size_t>(counts[rank]));
    }
    ReducingCall made(Collective::reduce_scatter,
                      std::reduce(elems.begin(), elems.end(), std::size_t{0}), type, op);
    if (!made.possible()) return noted(Function::reduce_scatter, hand_on);
    return make(Function::reduce_scatter, comm, *group, made.bytes(), hand_on,
                [&](Communicator& to) {
                  made.call.counts = elems.data();
                  reduce_scatter(to, made, in, out, elems[static_cast<std::size_t>(to.rank())]);
                });
  });
}

RONDO_OF_MPI int MPI_Reduce_scatter_block(const void* in, void* out, int count, MPI_Datatype type,
                                          MPI_Op op, MPI_Comm comm) {
  return guarded(comm, [&]() -> int {
    const auto hand_on = [&] { return PMPI_Reduce_scatter_block(in, out, count, type, op, comm); };
    Group* const group = Group::of(comm);
    if (group == nullptr || count < 0) return hand_on();
    const auto own = static_cast<std::size_t>(count);
    ReducingCall made(Collective::reduce_scatter, own * static_cast<std::size_t>(group->size()),
                      type, op);
    if (!made.possible()) return noted(Function::reduce_scatter_block, hand_on);
    return make(Function::reduce_scatter_block, comm, *group, made.bytes(), hand_on,
                [&](Communicator& to) { reduce_scatter(to, made, in, out, own); });
  });
}

}  // extern "C"

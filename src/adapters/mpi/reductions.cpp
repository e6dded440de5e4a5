// The collectives of MPI that reduce.
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "adapters/mpi/calls.hpp"
#include "adapters/mpi/functions.hpp"

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
void run_reduce_scatter(Communicator& comm, ReducingCall& made, const void* in, void* out,
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

}  // namespace

int all_reduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
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

int iall_reduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm, MPI_Request* request, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    if (group == nullptr || count < 0) return hand_on();
    ReducingCall made(Collective::all_reduce, static_cast<std::size_t>(count), type, op);
    // The program may free its operation while the call goes on.
    if (!made.possible() || made.of_program() || !group->takes_in_background(made.bytes())) {
      return noted(Function::iall_reduce, hand_on);
    }
    made.call.in = in == MPI_IN_PLACE ? out : in;
    made.call.out = out;
    return start(Function::iall_reduce, comm, *group, made.bytes(),
                 [&](Communicator& by) { group->completions().start(by, made.call, request); });
  });
}

int reduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
           MPI_Comm comm, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
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

int reduce_scatter(const void* in, void* out, Counts counts, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    if (group == nullptr || !counts.given()) return hand_on();
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
                  run_reduce_scatter(to, made, in, out, elems[static_cast<std::size_t>(to.rank())]);
                });
  });
}

int reduce_scatter_block(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm, HandOn hand_on) {
  return guarded(comm, [&]() -> int {
    Group* const group = Group::of(comm);
    if (group == nullptr || count < 0) return hand_on();
    const auto own = static_cast<std::size_t>(count);
    ReducingCall made(Collective::reduce_scatter, own * static_cast<std::size_t>(group->size()),
                      type, op);
    if (!made.possible()) return noted(Function::reduce_scatter_block, hand_on);
    return make(Function::reduce_scatter_block, comm, *group, made.bytes(), hand_on,
                [&](Communicator& to) { run_reduce_scatter(to, made, in, out, own); });
  });
}

}  // namespace rondo::mpi_programs

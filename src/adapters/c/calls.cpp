#include <rondo/calls.h>

#include <cstddef>
#include <memory>
#include <numeric>
#include <vector>

#include "adapters/c/handles.hpp"

namespace c = rondo::c_interface;

namespace {

using rondo::Call;
using rondo::Collective;
using rondo::UserReduction;

// `op`: of calls that reduce.
rondo_status run(rondo_comm* comm, const rondo_call_options* options, Call& call, rondo_type type,
                 rondo_op op = RONDO_SUM) noexcept {
  return c::status_of([&] {
    call.type = c::type_of(type);
    call.op = c::op_of(op);
    if (options != nullptr) call.options = c::options_of(options);
    c::communicator_of(comm).run(call);
  });
}

// A call of C++, and what it points to.
class MadeCall {
 public:
  explicit MadeCall(const rondo_call* given) {
    constexpr rondo_call kDefaults = RONDO_CALL(RONDO_BARRIER);
    const auto known =
        c::known_part<rondo_call>(c::required(given, "call"), kDefaults, "rondo_call");
    call_.collective =
        c::checked<Collective>(known.collective, rondo::kCollectiveCount, "collective");
    call_.in = known.in;
    call_.out = known.out;
    call_.count = known.count;
    call_.type = c::type_of(known.type);
    call_.op = c::op_of(known.op);
    call_.root = known.root;
    call_.options = c::options_of(known.options);
    call_.to = known.to;
    call_.from = known.from;
    call_.received = known.received;
    call_.counts = known.counts;
    call_.received_counts = known.received_counts;
    if (known.reduction == nullptr) return;
    reduction_ = c::reduction_of(known.reduction);
    call_.reduction = &reduction_;
  }
  MadeCall(const MadeCall&) = delete;
  MadeCall& operator=(const MadeCall&) = delete;

  [[nodiscard]] const Call& call() const { return call_; }

 private:
  Call call_;
  UserReduction reduction_;
};

std::vector<rondo::Communicator::Part> parts_of(void* const* buffers, const std::size_t* counts,
                                                std::size_t how_many) {
  std::vector<rondo::Communicator::Part> parts;
  if (how_many == 0) return parts;
  static_cast<void>(c::required(buffers, "buffers"));
  static_cast<void>(c::required(counts, "counts"));
  for (std::size_t i = 0; i < how_many; ++i) parts.push_back({buffers[i], counts[i]});
  return parts;
}

}  // namespace

void rondo_chunk(std::size_t count, std::size_t chunks, std::size_t index, std::size_t* offset,
                 std::size_t* chunk_count) noexcept {
  const rondo::Range range = rondo::chunk_range(count, chunks, index);
  *offset = range.offset;
  *chunk_count = range.count;
}

rondo_status rondo_all_reduce(rondo_comm* comm, const void* in, void* out, std::size_t count,
                              rondo_type type, rondo_op op,
                              const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::all_reduce, .in = in, .out = out, .count = count};
  return run(comm, options, call, type, op);
}

rondo_status rondo_reduce_scatter(rondo_comm* comm, const void* in, void* out, std::size_t count,
                                  rondo_type type, rondo_op op,
                                  const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::reduce_scatter, .in = in, .out = out, .count = count};
  return run(comm, options, call, type, op);
}

rondo_status rondo_all_gather(rondo_comm* comm, const void* in, void* out, std::size_t count,
                              rondo_type type, const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::all_gather, .in = in, .out = out, .count = count};
  return run(comm, options, call, type);
}

rondo_status rondo_reduce_scatter_v(rondo_comm* comm, const void* in, void* out,
                                    const std::size_t* counts, rondo_type type, rondo_op op,
                                    const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::reduce_scatter, .in = in, .out = out};
  const rondo_status status = c::status_of([&] { c::set_counts(comm, counts, call); });
  return status == RONDO_OK ? run(comm, options, call, type, op) : status;
}

rondo_status rondo_all_gather_v(rondo_comm* comm, const void* in, void* out,
                                const std::size_t* counts, rondo_type type,
                                const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::all_gather, .in = in, .out = out};
  const rondo_status status = c::status_of([&] { c::set_counts(comm, counts, call); });
  return status == RONDO_OK ? run(comm, options, call, type) : status;
}

rondo_status rondo_broadcast(rondo_comm* comm, const void* in, void* out, std::size_t count,
                             rondo_type type, int root,
                             const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::broadcast, .in = in, .out = out, .count = count};
  call.root = root;
  return run(comm, options, call, type);
}

rondo_status rondo_reduce(rondo_comm* comm, const void* in, void* out, std::size_t count,
                          rondo_type type, rondo_op op, int root,
                          const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::reduce, .in = in, .out = out, .count = count};
  call.root = root;
  return run(comm, options, call, type, op);
}

rondo_status rondo_barrier(rondo_comm* comm, const rondo_call_options* options) noexcept {
  Call call;
  return run(comm, options, call, RONDO_F32);
}

rondo_status rondo_gather(rondo_comm* comm, const void* in, void* out, std::size_t count,
                          rondo_type type, int root, const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::gather, .in = in, .out = out, .count = count};
  call.root = root;
  return run(comm, options, call, type);
}

rondo_status rondo_scatter(rondo_comm* comm, const void* in, void* out, std::size_t count,
                           rondo_type type, int root, const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::scatter, .in = in, .out = out, .count = count};
  call.root = root;
  return run(comm, options, call, type);
}

rondo_status rondo_all_to_all(rondo_comm* comm, const void* in, void* out, std::size_t count,
                              rondo_type type, const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::all_to_all, .in = in, .out = out, .count = count};
  return run(comm, options, call, type);
}

rondo_status rondo_send(rondo_comm* comm, const void* in, std::size_t count, rondo_type type,
                        int to, const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::send, .in = in, .count = count};
  call.to = to;
  return run(comm, options, call, type);
}

rondo_status rondo_recv(rondo_comm* comm, void* out, std::size_t count, rondo_type type, int from,
                        const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::recv, .out = out, .count = count};
  call.from = from;
  return run(comm, options, call, type);
}

rondo_status rondo_sendrecv(rondo_comm* comm, const void* in, std::size_t count, int to, void* out,
                            std::size_t received, int from, rondo_type type,
                            const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::sendrecv, .in = in, .out = out, .count = count};
  call.to = to;
  call.from = from;
  call.received = received;
  return run(comm, options, call, type);
}

rondo_status rondo_gather_v(rondo_comm* comm, const void* in, void* out, const std::size_t* counts,
                            rondo_type type, int root, const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::gather, .in = in, .out = out};
  call.root = root;
  const rondo_status status = c::status_of([&] { c::set_counts(comm, counts, call); });
  return status == RONDO_OK ? run(comm, options, call, type) : status;
}

rondo_status rondo_scatter_v(rondo_comm* comm, const void* in, void* out, const std::size_t* counts,
                             rondo_type type, int root,
                             const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::scatter, .in = in, .out = out};
  call.root = root;
  const rondo_status status = c::status_of([&] { c::set_counts(comm, counts, call); });
  return status == RONDO_OK ? run(comm, options, call, type) : status;
}

rondo_status rondo_all_to_all_v(rondo_comm* comm, const void* in, const std::size_t* counts,
                                void* out, const std::size_t* received, rondo_type type,
                                const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::all_to_all, .in = in, .out = out};
  const rondo_status status = c::status_of([&] {
    c::set_counts(comm, counts, call);
    call.received_counts = &c::required(received, "received");
    call.received =
        std::accumulate(received, received + c::communicator_of(comm).size(), std::size_t{0});
  });
  return status == RONDO_OK ? run(comm, options, call, type) : status;
}

rondo_status rondo_all_reduce_coalesced(rondo_comm* comm, void* const* buffers,
                                        const std::size_t* counts, std::size_t how_many,
                                        rondo_type type, rondo_op op,
                                        const rondo_call_options* options) noexcept {
  return c::status_of([&] {
    c::communicator_of(comm).run_coalesced(parts_of(buffers, counts, how_many), c::type_of(type),
                                           c::op_of(op), c::options_of(options));
  });
}

rondo_status rondo_start_all_reduce_coalesced(rondo_comm* comm, void* const* buffers,
                                              const std::size_t* counts, std::size_t how_many,
                                              rondo_type type, rondo_op op,
                                              const rondo_call_options* options,
                                              rondo_work** work) noexcept {
  if (work != nullptr) *work = nullptr;
  return c::status_of([&] {
    auto made = std::make_unique<rondo_work>();
    rondo_work*& result = c::required(work, "work");
    made->work = c::communicator_of(comm).run_coalesced_async(parts_of(buffers, counts, how_many),
                                                              c::type_of(type), c::op_of(op),
                                                              c::options_of(options));
    result = made.release();
  });
}

rondo_status rondo_prepare(rondo_comm* comm, const rondo_call* call,
                           rondo_prepared** prepared) noexcept {
  if (prepared != nullptr) *prepared = nullptr;
  return c::status_of([&] {
    rondo_prepared*& result = c::required(prepared, "prepared");
    result = std::make_unique<rondo_prepared>(
                 rondo_prepared{c::communicator_of(comm).prepare(MadeCall(call).call())})
                 .release();
  });
}

rondo_status rondo_prepared_run(rondo_prepared* prepared) noexcept {
  return c::status_of([&] { c::required(prepared, "prepared").call.run(); });
}

rondo_status rondo_prepared_start(rondo_prepared* prepared, rondo_work** work) noexcept {
  if (work != nullptr) *work = nullptr;
  return c::status_of([&] {
    auto made = std::make_unique<rondo_work>();
    rondo_work*& result = c::required(work, "work");
    made->work = c::required(prepared, "prepared").call.start();
    result = made.release();
  });
}

void rondo_prepared_destroy(rondo_prepared* prepared) noexcept { delete prepared; }

rondo_status rondo_run(rondo_comm* comm, const rondo_call* call) noexcept {
  return c::status_of([&] { c::communicator_of(comm).run(MadeCall(call).call()); });
}

rondo_status rondo_start(rondo_comm* comm, const rondo_call* call, rondo_work** work) noexcept {
  if (work != nullptr) *work = nullptr;
  return c::status_of([&] {
    auto made = std::make_unique<rondo_work>();
    rondo_work*& result = c::required(work, "work");
    made->work = c::communicator_of(comm).run_async(MadeCall(call).call());
    result = made.release();
  });
}

rondo_status rondo_wait(const rondo_work* work) noexcept {
  return c::status_of([&] { c::required(work, "work").work.wait(); });
}

int rondo_done(const rondo_work* work) noexcept { return work->work.done() ? 1 : 0; }

void rondo_work_destroy(rondo_work* work) noexcept { delete work; }

rondo_status rondo_algorithm_for(const rondo_comm* comm, const rondo_call* call,
                                 rondo_algorithm* algorithm) noexcept {
  return c::status_of([&] {
    c::required(algorithm, "algorithm") =
        static_cast<rondo_algorithm>(c::communicator_of(comm).algorithm_for(MadeCall(call).call()));
  });
}

#include "engine/chain.hpp"

#include <cstddef>
#include <cstring>
#include <vector>

#include "engine/by_schedule.hpp"
#include "engine/scratch.hpp"
#include "plan/parts.hpp"
#include "reduce/average.hpp"
#include "reduce/scale.hpp"

namespace rondo::detail {
namespace {

bool is_rounded(DataType type) { return type == DataType::f16 || type == DataType::bf16; }

// The parts of one call.
class Chain {
 public:
  Chain(Context& context, const Call& call, const Signature& signature)
      : context_(context),
        call_(call),
        signature_(signature),
        turn_(context.wiring.links.segment->reserving_turn()),
        last_(context.wiring.size - 1) {}

  void run() {
    const int rank = context_.wiring.rank;
    const bool holds_all = call_.collective == Collective::all_reduce ||
                           (call_.collective == Collective::reduce && rank == call_.root);
    std::vector<std::byte> scratch =
        take_scratch<std::byte>(turn_, holds_all ? 0 : call_.count * size_of(call_.type));
    void* const whole = holds_all ? call_.out : scratch.data();
    reduce_to_last(whole);
    run_part(Collective::broadcast, call_.type, whole, whole);
    if (call_.collective != Collective::reduce_scatter) return;
    const Range own = own_chunk(call_, rank, last_ + 1);
    if (own.count == 0) return;
    std::memcpy(call_.out, scratch.data() + own.offset * size_of(call_.type),
                own.count * size_of(call_.type));
  }

 private:
  // A part with the last rank as its root.
  void run_part(Collective collective, DataType type, const void* in, void* out) {
    Call part = call_;
    part.collective = collective;
    part.type = type;
    part.in = in;
    part.out = out;
    part.root = last_;
    part.counts = nullptr;  // the parts handle the whole vector
    walk(context_, host_call_of(context_, part, context_.plan(part, Algorithm::ring), signature_));
  }

  // The last rank's `out` gets the reduction over all ranks.
  void reduce_to_last(void* out) {
    const bool is_last = context_.wiring.rank == last_;
    if (!is_rounded(call_.type)) {
      run_part(Collective::reduce, call_.type, call_.in, is_last ? out : nullptr);
      return;
    }
    // An average of parts, so that the sum fits f32 whatever the elements are.
    const double part = call_.op == ReduceOp::avg ? average_of(call_.type, last_ + 1).scale : 1;
    std::vector<float> wide = take_scratch<float>(turn_, call_.count);
    scale(wide.data(), DataType::f32, call_.in, call_.type, call_.count, part);
    run_part(Collective::reduce, DataType::f32, wide.data(), wide.data());
    if (is_last) scale(out, call_.type, wide.data(), DataType::f32, call_.count, 1 / part);
  }

  Context& context_;
  const Call& call_;
  const Signature& signature_;
  ReservingTurn& turn_;
  int last_;
};

}  // namespace

void run_by_chain(Context& context, const Call& call, const Signature& signature) {
  Chain(context, call, signature).run();
  context.confirmation.forget();
}

}  // namespace rondo::detail

#include "engine/chain.hpp"

#include <cstddef>
#include <cstring>
#include <vector>

#include "engine/parts.hpp"
#include "engine/scratch.hpp"
#include "reduce/average.hpp"
#include "reduce/scale.hpp"

namespace rondo::detail {
namespace {

bool is_rounded(DataType type) { return type == DataType::f16 || type == DataType::bf16; }

Call part_of(const Call& call, Collective collective, DataType type, const void* in, void* out,
             int last) {
  Call part = call;
  part.collective = collective;
  part.type = type;
  part.in = in;
  part.out = out;
  part.root = last;
  part.counts = nullptr;  // the parts handle the whole vector
  return part;
}

// The last rank's `out` gets the reduction over all ranks.
void reduce_to_last(const Call& call, void* out, bool is_last, int last, ReservingTurn& turn,
                    const std::function<void(const Call&)>& run) {
  if (!is_rounded(call.type)) {
    run(part_of(call, Collective::reduce, call.type, call.in, is_last ? out : nullptr, last));
    return;
  }
  // An average of parts, so that the sum fits f32 whatever the elements are.
  const double part = call.op == ReduceOp::avg ? average_of(call.type, last + 1).scale : 1;
  std::vector<float> wide = take_scratch<float>(turn, call.count);
  scale(wide.data(), DataType::f32, call.in, call.type, call.count, part);
  run(part_of(call, Collective::reduce, DataType::f32, wide.data(), wide.data(), last));
  if (is_last) scale(out, call.type, wide.data(), DataType::f32, call.count, 1 / part);
}

}  // namespace

void run_chain(const Call& call, int rank, int size, ReservingTurn& turn,
               const std::function<void(const Call&)>& run) {
  const int last = size - 1;
  const bool holds_all = call.collective == Collective::all_reduce ||
                         (call.collective == Collective::reduce && rank == call.root);
  std::vector<std::byte> scratch =
      take_scratch<std::byte>(turn, holds_all ? 0 : call.count * size_of(call.type));
  void* const whole = holds_all ? call.out : scratch.data();
  reduce_to_last(call, whole, rank == last, last, turn, run);
  run(part_of(call, Collective::broadcast, call.type, whole, whole, last));
  if (call.collective != Collective::reduce_scatter) return;
  const Range own = own_chunk(call, rank, size);
  if (own.count == 0) return;
  std::memcpy(call.out, scratch.data() + own.offset * size_of(call.type),
              own.count * size_of(call.type));
}

}  // namespace rondo::detail

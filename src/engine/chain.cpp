#include "engine/chain.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "engine/by_schedule.hpp"
#include "engine/scratch.hpp"
#include "plan/parts.hpp"
#include "reduce/average.hpp"
#include "reduce/by_user.hpp"
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
        take_scratch<std::byte>(turn_, holds_all ? 0 : call_.count * element_bytes(call_));
    void* const whole = holds_all ? call_.out : scratch.data();
    reduce_to_last(whole);
    run_part(Collective::broadcast, call_.type, whole, whole);
    if (call_.collective != Collective::reduce_scatter) return;
    const Range own = own_chunk(call_, rank, last_ + 1);
    if (own.count == 0) return;
    std::memcpy(call_.out, scratch.data() + own.offset * element_bytes(call_),
                own.count * element_bytes(call_));
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
    if (call_.reduction != nullptr || !is_rounded(call_.type)) {
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

// A reduction of the program whose elements cannot go along the ring in rank order: the ring has
// another order, or an element does not fit a slot. Piece by piece, each rank gets the elements of
// all ranks, as bytes, and reduces what it outputs.
class Gathered {
 public:
  Gathered(Context& context, const Call& call, const Signature& signature)
      : context_(context),
        call_(call),
        signature_(signature),
        ranks_(static_cast<std::size_t>(context.wiring.size)),
        element_(call.reduction->element_bytes),
        most_elems_(std::max<std::size_t>(kPieceBytes / element_ / ranks_, 1)),
        gathered_(take_scratch<std::byte>(context.wiring.links.segment->reserving_turn(),
                                          std::min(most_elems_, call.count) * element_ * ranks_)),
        ins_(ranks_) {}

  void run() {
    std::uint64_t done = 0;
    do {
      const Range piece{done, std::min<std::uint64_t>(most_elems_, call_.count - done)};
      gather(piece);
      fold(piece);
      done += piece.count;
    } while (done < call_.count);
  }

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;

  void gather(const Range& piece) {
    Call part;
    part.collective = Collective::all_gather;
    part.type = DataType::u8;
    part.count = piece.count * element_ * ranks_;
    part.in = static_cast<const std::byte*>(call_.in) + piece.offset * element_;
    part.out = gathered_.data();
    walk(context_, host_call_of(context_, part, context_.plan(part, Algorithm::ring), signature_));
  }

  void fold(const Range& piece) {
    if (!writes_output(call_, context_.wiring.rank)) return;
    const Range output = output_range(call_, context_.wiring.rank, context_.wiring.size);
    const std::uint64_t begin = std::max(piece.offset, output.offset);
    const std::uint64_t end = std::min(piece.offset + piece.count, output.offset + output.count);
    if (begin >= end) return;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      ins_[rank] = gathered_.data() + (rank * piece.count + begin - piece.offset) * element_;
    }
    std::byte* out = static_cast<std::byte*>(call_.out) + (begin - output.offset) * element_;
    fold_by(*call_.reduction, {&out, 1, ins_.data(), ins_.size()}, end - begin);
  }

  Context& context_;
  const Call& call_;
  const Signature& signature_;
  std::size_t ranks_;
  std::size_t element_;
  std::size_t most_elems_;
  std::vector<std::byte> gathered_;
  std::vector<const std::byte*> ins_;
};

bool goes_along_ring(const Context& context, const Call& call) {
  const Offers& offers = context.wiring.offers;
  return offers.has(Algorithm::chain) && element_bytes(call) <= offers.largest_element_bytes;
}

}  // namespace

void run_by_chain(Context& context, const Call& call, const Signature& signature) {
  if (goes_along_ring(context, call)) {
    Chain(context, call, signature).run();
  } else {
    Gathered(context, call, signature).run();
  }
  context.confirmation.forget();
}

}  // namespace rondo::detail

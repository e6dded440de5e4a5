#include "gradient/averaging.hpp"

namespace rondo::detail {

Averaging averaging_for(const GradientOptions& options, const TakingPart& who) {
  switch (options.average) {
    case Average::ranks: {
      // The call itself averages over all ranks (avg); for any other average, gradients are scaled,
      // then summed.
      const bool plain = who.live == who.ranks && options.wire == WireType::exact && !options.hook;
      if (plain) return {ReduceOp::avg, 1};
      return {ReduceOp::sum, who.live > 0 ? 1 / static_cast<double>(who.live) : 1};
    }
    case Average::samples: {
      if (who.samples == 0) return {ReduceOp::sum, 0};
      const bool sums = options.local == LocalGradient::sum_of_samples;
      const std::uint64_t own = sums && who.own_samples > 0 ? 1 : who.own_samples;
      return {ReduceOp::sum, static_cast<double>(own) / static_cast<double>(who.samples)};
    }
    case Average::sum:
      break;
  }
  return {};
}

}  // namespace rondo::detail

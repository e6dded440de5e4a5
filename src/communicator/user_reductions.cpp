#include <rondo/user_reductions.hpp>

#include <string>

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo {
namespace {

class Builder {
 public:
  Builder(const UserReductionCalls& calls, const char* function, const UserReduction& reduction,
          const CallOptions& options)
      : calls_(calls), function_(function) {
    call.reduction = &reduction;
    call.options = options;
    if (reduction.element_bytes == 0) refuse("the UserReduction has elements of 0 bytes");
  }

  // How many elements these bytes are.
  [[nodiscard]] std::size_t elements(const char* which, std::size_t bytes) const {
    const std::size_t element = call.reduction->element_bytes;
    if (bytes % element != 0) {
      refuse(fmt::format("`{}` has {} bytes, which are no whole elements of {} bytes", which, bytes,
                         element));
    }
    return bytes / element;
  }
  void require(const char* which, std::size_t bytes, std::size_t expected_elements) const {
    calls_.require_size(function_, which, elements(which, bytes), expected_elements);
  }

  Call call;

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("rank {}: {}: {}", calls_.rank, function_, why));
  }

  const UserReductionCalls& calls_;
  const char* function_;
};

}  // namespace

Call UserReductionCalls::all_reduce(std::span<const std::byte> in, std::span<std::byte> out,
                                    const UserReduction& reduction,
                                    const CallOptions& options) const {
  Builder made(*this, "all_reduce", reduction, options);
  made.call.collective = Collective::all_reduce;
  made.call.count = made.elements("in", in.size());
  made.require("out", out.size(), made.call.count);
  made.call.in = in.data();
  made.call.out = out.data();
  return made.call;
}

Call UserReductionCalls::reduce(std::span<const std::byte> in, std::span<std::byte> out, int root,
                                const UserReduction& reduction, const CallOptions& options) const {
  Builder made(*this, "reduce", reduction, options);
  made.call.collective = Collective::reduce;
  made.call.count = made.elements("in", in.size());
  if (rank == root) made.require("out", out.size(), made.call.count);
  made.call.in = in.data();
  made.call.out = out.data();
  made.call.root = root;
  return made.call;
}

Call UserReductionCalls::reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out,
                                        const UserReduction& reduction,
                                        const CallOptions& options) const {
  Builder made(*this, "reduce_scatter", reduction, options);
  made.call.collective = Collective::reduce_scatter;
  made.call.count = made.elements("in", in.size());
  made.require("out", out.size(), chunk_of(made.call.count).count);
  made.call.in = in.data();
  made.call.out = out.data();
  return made.call;
}

Call UserReductionCalls::reduce_scatter_v(std::span<const std::byte> in, std::span<std::byte> out,
                                          ChunkCounts counts, const UserReduction& reduction,
                                          const CallOptions& options) const {
  Builder made(*this, "reduce_scatter_v", reduction, options);
  made.call.collective = Collective::reduce_scatter;
  made.call.count = made.elements("in", in.size());
  const Range own = chunk_with("reduce_scatter_v", "in", made.call.count, counts);
  made.require("out", out.size(), own.count);
  made.call.in = in.data();
  made.call.out = out.data();
  made.call.counts = counts.data();
  return made.call;
}

}  // namespace rondo

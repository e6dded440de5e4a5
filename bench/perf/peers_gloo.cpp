#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/with_type.hpp"
#include "bench/perf/peers.hpp"

namespace rondo::perf {
namespace {

// By which Gloo's ranks learn each other's addresses: every rank writes one entry before it reads
// those of the others.
class CommunicatorStore : public gloo::rendezvous::Store {
 public:
  explicit CommunicatorStore(Communicator& comm) : comm_(comm) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    std::vector<std::uint8_t> mine(key.begin(), key.end());
    mine.push_back(0);
    mine.insert(mine.end(), data.begin(), data.end());
    const auto rank = static_cast<std::size_t>(comm_.rank());
    std::vector<std::size_t> counts(static_cast<std::size_t>(comm_.size()));
    counts[rank] = mine.size();
    comm_.all_gather(std::span<std::uint64_t>(counts));
    std::vector<std::uint8_t> all(std::reduce(counts.begin(), counts.end()));
    comm_.all_gather_v(mine, all, counts);
    auto entry = all.begin();
    for (const std::size_t count : counts) {
      const auto end = entry + static_cast<std::ptrdiff_t>(count);
      const auto separator = std::find(entry, end, 0);
      entries_[std::string(entry, separator)] = std::vector<char>(separator + 1, end);
      entry = end;
    }
  }
  std::vector<char> get(const std::string& key) override { return entries_.at(key); }
  void wait(const std::vector<std::string>& /*keys*/) override {}

 private:
  Communicator& comm_;
  std::map<std::string, std::vector<char>> entries_;
};

// Between hosts, Gloo takes the address that the host's name has.
std::shared_ptr<gloo::Context> join(Communicator& comm) {
  const auto& places = comm.topology().places;
  const bool one_host = std::all_of(places.begin(), places.end(), [&](const RankPlace& place) {
    return rondo::on_one_host(place, places[0]);
  });
  gloo::transport::tcp::attr where;
  if (one_host) where.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(where);
  auto context = std::make_shared<gloo::rendezvous::Context>(comm.rank(), comm.size());
  CommunicatorStore store(comm);
  context->connectFullMesh(store, device);
  return context;
}

template <class T>
gloo::AllreduceOptions::Func function_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<T>);
    case ReduceOp::prod:
      return static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::product<T>);
    case ReduceOp::min:
      return static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::min<T>);
    case ReduceOp::max:
      return static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::max<T>);
    default:  // Gloo has no function for the others, so that gloo_peer refuses such calls.
      return {};
  }
}

template <class T>
std::function<void()> all_reduce(const std::shared_ptr<gloo::Context>& context, const Call& call) {
  return [context, call, reduce = function_of<T>(call.op)] {
    gloo::AllreduceOptions options(context);
    auto* in = const_cast<T*>(static_cast<const T*>(call.in));
    if (call.in != call.out) options.setInput(in, call.count);
    options.setOutput(static_cast<T*>(call.out), call.count);
    options.setReduceFunction(reduce);
    gloo::allreduce(options);
  };
}

}  // namespace

bool has_gloo_peer() { return true; }

Peer gloo_peer(Communicator& comm) {
  return [context = join(comm)](const Call& call) -> std::optional<std::function<void()>> {
    if (call.collective != Collective::all_reduce || !detail::is_common(call.type) ||
        !detail::is_common(call.op) || call.op == ReduceOp::avg || call.count == 0) {
      return std::nullopt;
    }
    return detail::with_common_type(
        call.type, [&](auto tag) -> std::optional<std::function<void()>> {
          using T = typename decltype(tag)::Type;
          if constexpr (std::is_arithmetic_v<T>) {
            return all_reduce<T>(context, call);
          } else {
            return std::nullopt;  // Gloo's f16 is another type, and Gloo has no bf16
          }
        });
  };
}

}  // namespace rondo::perf

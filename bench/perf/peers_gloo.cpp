#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/with_type.hpp"
#include "bench/perf/peers.hpp"

namespace rondo::perf {
namespace {

using Path = std::array<char, 256>;

// A folder through which the ranks find each other; rank 0 makes it and removes it.
class MeetingPlace {
 public:
  explicit MeetingPlace(Communicator& comm) : owner_(comm.rank() == 0) {
    if (owner_) {
      std::string folder = (std::filesystem::temp_directory_path() / "rondo-gloo-XXXXXX").string();
      if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make " + folder);
      folder.copy(path_.data(), path_.size() - 1);
    }
    comm.broadcast(std::span(reinterpret_cast<std::uint8_t*>(path_.data()), path_.size()), 0);
  }
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;
  ~MeetingPlace() {
    std::error_code ignored;
    if (owner_) std::filesystem::remove_all(path_.data(), ignored);
  }
  [[nodiscard]] std::string path() const { return path_.data(); }

 private:
  bool owner_;
  Path path_{};
};

// join() gives Gloo the address 127.0.0.1, through which only ranks of one host can connect.
bool on_one_host(const Topology& topology) {
  return std::all_of(topology.places.begin(), topology.places.end(),
                     [&](const RankPlace& place) { return place.host == topology.places[0].host; });
}

std::shared_ptr<gloo::Context> join(Communicator& comm) {
  const MeetingPlace place(comm);
  auto context = std::make_shared<gloo::rendezvous::Context>(comm.rank(), comm.size());
  gloo::rendezvous::FileStore store(place.path());
  gloo::transport::tcp::attr where("127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(where);
  context->connectFullMesh(store, device);
  comm.barrier();  // rank 0 must not remove the folder while another rank still reads it
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
    case ReduceOp::avg:
      break;
  }
  return {};
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
  if (!on_one_host(comm.topology())) return [](const Call&) { return std::nullopt; };
  return [context = join(comm)](const Call& call) -> std::optional<std::function<void()>> {
    if (call.collective != Collective::all_reduce || call.op == ReduceOp::avg || call.count == 0) {
      return std::nullopt;
    }
    return detail::with_type(call.type, [&](auto tag) -> std::optional<std::function<void()>> {
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

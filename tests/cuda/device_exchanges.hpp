// A device communicator with the calls of one on host memory: it carries them out on copies in
// device memory, so that the checks of host communicators (tests/support/exchange_checks.hpp) check
// devices too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <ranges>
#include <span>
#include <vector>

#include <rondo/cuda.hpp>

#include "tests/cuda/device_buffer.hpp"
#include "tests/support/exchange_checks.hpp"

namespace rondo::test {

// Elements are of type T. A call may have up to `most` of them in both buffers together.
template <class T>
class DeviceExchanges {
 public:
  // All device memory is allocated here: allocating may wait for kernels that wait for other ranks.
  DeviceExchanges(cuda::Communicator& comm, std::size_t most)
      : comm_(comm), stream_(comm.device()), memory_(comm.device(), most + kBetween, T{}) {}

  [[nodiscard]] int rank() const { return comm_.rank(); }
  [[nodiscard]] int size() const { return comm_.size(); }

  // What has been enqueued.
  class Pending {
   public:
    explicit Pending(std::function<void()> finish) : finish_(std::move(finish)) {}
    void wait() { finish_(); }

   private:
    std::function<void()> finish_;
  };

  template <class In>
  Pending send_async(const In& in, int to) {
    return on_copies(whole(in), {}, [&](auto data, auto) { comm_.send(data, to, stream_.get()); });
  }
  template <class Out>
  Pending recv_async(Out&& out, int from) {
    return on_copies({}, whole(out),
                     [&](auto, auto data) { comm_.recv(data, from, stream_.get()); });
  }
  template <class In, class Out>
  Pending sendrecv_async(const In& in, int to, Out&& out, int from) {
    return on_copies(whole(in), whole(out), [&](auto sent, auto received) {
      comm_.sendrecv(sent, to, received, from, stream_.get());
    });
  }
  template <class In, class Out>
  Pending gather_async(const In& in, Out&& out, int root) {
    return on_copies(whole(in), whole(out),
                     [&](auto mine, auto all) { comm_.gather(mine, all, root, stream_.get()); });
  }
  template <class In, class Out>
  Pending scatter_async(const In& in, Out&& out, int root) {
    return on_copies(whole(in), whole(out),
                     [&](auto all, auto mine) { comm_.scatter(all, mine, root, stream_.get()); });
  }
  template <class In, class Out>
  Pending all_to_all_async(const In& in, Out&& out) {
    return on_copies(whole(in), whole(out), [&](auto sent, auto received) {
      comm_.all_to_all(sent, received, stream_.get());
    });
  }
  template <class In, class Out>
  Pending gather_v_async(const In& in, Out&& out, ChunkCounts counts, int root) {
    return on_copies(whole(in), whole(out), [&](auto mine, auto all) {
      comm_.gather_v(mine, all, counts, root, stream_.get());
    });
  }
  template <class In, class Out>
  Pending scatter_v_async(const In& in, Out&& out, ChunkCounts counts, int root) {
    return on_copies(whole(in), whole(out), [&](auto all, auto mine) {
      comm_.scatter_v(all, mine, counts, root, stream_.get());
    });
  }
  template <class In, class Out>
  Pending all_gather_v_async(const In& in, Out&& out, ChunkCounts counts) {
    return on_copies(whole(in), whole(out), [&](auto mine, auto all) {
      comm_.all_gather_v(mine, all, counts, stream_.get());
    });
  }
  template <class In, class Out>
  Pending reduce_scatter_v_async(const In& in, Out&& out, ChunkCounts counts, ReduceOp op) {
    return on_copies(whole(in), whole(out), [&](auto all, auto mine) {
      comm_.reduce_scatter_v(all, mine, counts, op, stream_.get());
    });
  }

  template <class In>
  void send(const In& in, int to) {
    send_async(in, to).wait();
  }
  template <class Out>
  void recv(Out&& out, int from) {
    recv_async(out, from).wait();
  }
  template <class In, class Out>
  void sendrecv(const In& in, int to, Out&& out, int from) {
    sendrecv_async(in, to, out, from).wait();
  }
  template <class In, class Out>
  void gather(const In& in, Out&& out, int root) {
    gather_async(in, out, root).wait();
  }
  template <class In, class Out>
  void scatter(const In& in, Out&& out, int root) {
    scatter_async(in, out, root).wait();
  }
  template <class In, class Out>
  void all_to_all(const In& in, Out&& out) {
    all_to_all_async(in, out).wait();
  }
  template <class In, class Out>
  void gather_v(const In& in, Out&& out, ChunkCounts counts, int root) {
    gather_v_async(in, out, counts, root).wait();
  }
  template <class In, class Out>
  void scatter_v(const In& in, Out&& out, ChunkCounts counts, int root) {
    scatter_v_async(in, out, counts, root).wait();
  }
  template <class In, class Out>
  void all_gather_v(const In& in, Out&& out, ChunkCounts counts) {
    all_gather_v_async(in, out, counts).wait();
  }
  template <class R>
  void all_gather_v(R&& buffer, ChunkCounts counts) {
    on_copies({}, whole(buffer), [&](auto, auto data) {
      comm_.all_gather_v(data, counts, stream_.get());
    }).wait();
  }
  template <class In, class Out>
  void reduce_scatter_v(const In& in, Out&& out, ChunkCounts counts, ReduceOp op) {
    reduce_scatter_v_async(in, out, counts, op).wait();
  }
  template <class R>
  void reduce_scatter_v(R&& buffer, ChunkCounts counts, ReduceOp op) {
    on_copies({}, whole(buffer), [&](auto, auto data) {
      comm_.reduce_scatter_v(data, counts, op, stream_.get());
    }).wait();
  }

 private:
  static constexpr std::size_t kBetween =
      3;  // elements between two buffers: they are aligned to elements only

  template <class R>
  static std::span<T> whole(R& range) {
    return {const_cast<T*>(std::ranges::data(range)), std::ranges::size(range)};
  }

  // Where `out` holds `in`, or the other way round, the copies do so too.
  template <class Calls>
  Pending on_copies(std::span<T> in, std::span<T> out, Calls&& calls) {
    const bool holds = std::less_equal<>()(out.data(), in.data()) &&
                       std::less_equal<>()(in.data() + in.size(), out.data() + out.size());
    const bool is_held = std::less_equal<>()(in.data(), out.data()) &&
                         std::less_equal<>()(out.data() + out.size(), in.data() + in.size());
    std::size_t in_at = 1;
    std::size_t out_at = in_at + in.size() + kBetween - 1;
    if (holds && !in.empty()) in_at = out_at + static_cast<std::size_t>(in.data() - out.data());
    if (is_held && !out.empty()) out_at = in_at + static_cast<std::size_t>(out.data() - in.data());
    const std::span<T> in_copy = memory_.span().subspan(in_at, in.size());
    const std::span<T> out_copy = memory_.span().subspan(out_at, out.size());
    copy(in_copy.data(), in);
    copy(out_copy.data(), out);
    calls(std::span<const T>(in_copy), out_copy);
    return Pending([this, out, out_copy] {
      comm_.wait(stream_.get());
      copy(out.data(), out_copy);
    });
  }
  static void copy(T* to, std::span<const T> from) {
    if (!from.empty()) detail::gpu::api::copy(to, from.data(), from.size_bytes());
  }

  cuda::Communicator& comm_;
  DeviceStream stream_;
  DeviceBuffer<T> memory_;
};

// As many elements as a call of ExchangeCheck may need: with counts, the vector twice.
inline std::size_t most_exchanged(int size, std::size_t each) {
  const auto ranks = static_cast<std::size_t>(size);
  return ranks * (ranks * each + 2) + 4 * ranks * (each + 1) + 2;
}

// By each rank, on a thread or in a process of its own.
template <class T>
void check_device_exchanges(cuda::Communicator& comm) {
  DeviceExchanges<T> exchanges(comm, most_exchanged(comm.size(), kExchangeSizes[3]));
  comm.host().barrier();
  for (const bool asynchronous : {false, true}) check_exchanges<T>(exchanges, asynchronous);
  comm.host().barrier();  // no memory is freed before all calls have ended
}

}  // namespace rondo::test

// Every collective on device memory against exact answers; for ranks that are threads, processes,
// or all driven by one thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/cuda.hpp>

#include "bench/exact_values.hpp"
#include "tests/cuda/device_buffer.hpp"

namespace rondo::test {

// One rank's part in one collective: enqueue it, wait for the stream, then look.
template <class T>
class DeviceCall {
 public:
  struct What {
    Collective collective = Collective::all_reduce;
    ReduceOp op = ReduceOp::sum;
    Algorithm algorithm = Algorithm::automatic;
    std::size_t count = 0;
    int root = 0;
    bool in_place = false;
    std::size_t shift = 0;    // elements by which the buffers miss their memory's alignment
    bool registered = false;  // the buffers lie in memory that all ranks reach
  };

  // Collective if the buffers are registered.
  DeviceCall(cuda::Communicator& comm, const What& what)
      : what_(what), rank_(comm.rank()), size_(comm.size()), own_(own_chunk()) {
    for (std::size_t i = 0; i < what.count; ++i) {
      result_.push_back(exact::result<T>(what.op, size_, i));
    }
    std::vector<T> in(what.count + what.shift, exact::from_double<T>(77));
    for (std::size_t i = 0; i < what.count; ++i) {
      const bool mine = i >= own_.offset && i < own_.offset + own_.count;
      if (reduces()) in[what.shift + i] = exact::input<T>(what.op, rank_, size_, i);
      if (what.collective == Collective::broadcast && rank_ == what.root)
        in[what.shift + i] = result_[i];
      if (what.collective == Collective::all_gather && mine) in[what.shift + i] = result_[i];
    }
    const std::vector<T> out(in.size(), exact::from_double<T>(66));
    if (what.registered) {
      in_ = std::make_unique<DeviceBuffer<T>>(comm, in);
      out_ = std::make_unique<DeviceBuffer<T>>(comm, out);
    } else {
      in_ = std::make_unique<DeviceBuffer<T>>(comm.device(), in);
      out_ = std::make_unique<DeviceBuffer<T>>(comm.device(), out);
    }
  }

  [[nodiscard]] Call call() const {
    T* in = in_->span().data() + what_.shift;
    T* whole = (what_.in_place ? in_ : out_)->span().data() + what_.shift;
    Call call;
    call.collective = what_.collective;
    call.in = what_.collective == Collective::all_gather ? in + own_.offset : in;
    call.out = what_.collective == Collective::reduce_scatter ? whole + own_.offset : whole;
    call.count = what_.count;
    call.type = kDataTypeOf<T>;
    call.op = what_.op;
    call.root = what_.root;
    if (what_.algorithm != Algorithm::automatic) call.options.algorithm = what_.algorithm;
    return call;
  }

  // After the call is done.
  void expect_exact() const {
    Range checked{0, what_.count};
    if (what_.collective == Collective::reduce_scatter) checked = own_;
    if (what_.collective == Collective::reduce && rank_ != what_.root) checked = {0, 0};
    const std::vector<T> actual = (what_.in_place ? in_ : out_)->read();
    std::size_t wrong = 0;
    for (std::size_t i = checked.offset; i < checked.offset + checked.count; ++i) {
      wrong += actual[what_.shift + i] == result_[i] ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0U) << name(what_.collective) << " by " << name(what_.algorithm) << " of "
                         << what_.count << " x " << name(kDataTypeOf<T>) << ", " << name(what_.op)
                         << ", rank " << rank_ << " of " << size_;
  }

 private:
  [[nodiscard]] bool reduces() const {
    return what_.collective == Collective::all_reduce ||
           what_.collective == Collective::reduce_scatter || what_.collective == Collective::reduce;
  }
  [[nodiscard]] Range own_chunk() const {
    return chunk_range(what_.count, static_cast<std::uint64_t>(size_),
                       static_cast<std::uint64_t>(rank_));
  }

  What what_;
  int rank_;
  int size_;
  Range own_;
  std::vector<T> result_;
  std::unique_ptr<DeviceBuffer<T>> in_;
  std::unique_ptr<DeviceBuffer<T>> out_;
};

// A rank, its stream, and its calls. All memory is allocated before the first call starts and freed
// after the last has ended: allocating and freeing may wait for kernels that wait for other ranks.
class DeviceRank {
 public:
  explicit DeviceRank(cuda::Communicator& comm)
      : comm_(comm), stream_(std::make_unique<DeviceStream>(comm.device())) {}

  template <class T>
  void prepare(const typename DeviceCall<T>::What& what) {
    auto call = std::make_shared<DeviceCall<T>>(comm_, what);
    calls_.push_back([this, call] { comm_.enqueue(call->call(), stream_->get()); });
    checks_.push_back([call] { call->expect_exact(); });
  }
  // Another call, which the test itself checks.
  void add(std::function<void()> call) { calls_.push_back(std::move(call)); }
  void start() {
    for (const auto& call : calls_) call();
  }
  void finish() {
    comm_.wait(stream_->get());
    for (const auto& check : checks_) check();
  }
  void clear() {
    calls_.clear();
    checks_.clear();
  }
  // All of these steps, for ranks on threads or processes of their own.
  void run() {
    comm_.host().barrier();
    start();
    finish();
    comm_.host().barrier();
    clear();
    comm_.host().barrier();
  }
  [[nodiscard]] cuda::Communicator& comm() { return comm_; }
  [[nodiscard]] cuda::Stream stream() const { return stream_->get(); }

 private:
  cuda::Communicator& comm_;
  std::unique_ptr<DeviceStream> stream_;
  std::vector<std::function<void()>> calls_;
  std::vector<std::function<void()>> checks_;
};

// The same for ranks that one thread drives.
inline void run_all(std::vector<DeviceRank>& ranks) {
  for (DeviceRank& rank : ranks) rank.start();
  for (DeviceRank& rank : ranks) rank.finish();
  for (DeviceRank& rank : ranks) rank.clear();
}

template <class T>
Call all_reduce_of(std::span<T> buffer) {
  Call call;
  call.collective = Collective::all_reduce;
  call.in = call.out = buffer.data();
  call.count = buffer.size();
  call.type = kDataTypeOf<T>;
  return call;
}

// Every collective, in place and not, by every algorithm that can.
template <class T>
void prepare_all_collectives(DeviceRank& rank, std::size_t count, bool with_one_shot) {
  using What = typename DeviceCall<T>::What;
  const int last = rank.comm().size() - 1;
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::naive, Algorithm::automatic}) {
    for (const Collective collective :
         {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
          Collective::broadcast, Collective::reduce}) {
      for (const bool in_place : {false, true}) {
        rank.prepare<T>(What{collective, ReduceOp::sum, algorithm, count, last, in_place, 0});
      }
    }
    rank.prepare<T>(What{Collective::barrier, ReduceOp::sum, algorithm, 0, 0, false, 0});
  }
  if (!with_one_shot) return;
  for (const bool in_place : {false, true}) {
    rank.prepare<T>(
        What{Collective::all_reduce, ReduceOp::sum, Algorithm::one_shot, count, 0, in_place, 0});
  }
  rank.prepare<T>(What{Collective::barrier, ReduceOp::sum, Algorithm::one_shot, 0, 0, false, 0});
}

}  // namespace rondo::test

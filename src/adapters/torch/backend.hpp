// A backend of torch.distributed over Rondo.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <rondo/communicator.hpp>

#include "runner.hpp"
#include "torch_types.hpp"

namespace rondo::torch_backend {

// Calls that are asynchronous in torch run on a thread of the group, in their order; the others on
// the thread that makes them, unless something is queued.
class RondoBackend final : public Base {
 public:
  // Makes another backend of the same ranks.
  using Make = std::function<BasePtr(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                     int size, std::chrono::milliseconds timeout)>;
  struct Others {
    Make for_messages;  // which have tags: Gloo
    Make for_devices;   // for tensors that are not in host memory; called when one first comes
  };

  // Waits for the other ranks. `name`: as which profilers show calls.
  RondoBackend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
               std::chrono::milliseconds timeout, Others others, std::string name);
  RondoBackend(const RondoBackend&) = delete;
  RondoBackend& operator=(const RondoBackend&) = delete;
  ~RondoBackend() override;

  const std::string getBackendName() const override { return "rondo"; }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options)
#if defined(TORCH_OF_1)
      ;
#else
      override;
#endif
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(TensorLists& output_lists, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs,
                  const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }

#if !defined(TORCH_OF_1)
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
#if defined(C10D_BACKEND_HAS_HOOKS)  // with these, torch has the forms of one tensor
  WorkPtr gather_single(at::Tensor& output, at::Tensor& input,
                        const c10d::GatherOptions& options) override;
  bool supportsSplitting() const override { return true; }
  BasePtr split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                const c10::intrusive_ptr<Options>& options) override;
  c10::intrusive_ptr<Options> getBackendOptions() override;
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;
  void setTimeout(std::chrono::milliseconds timeout) override;
  // Tensors that other ranks reach, for the buckets of DistributedDataParallel.
  bool supportsTensorAlloc(c10::DeviceIndex device) override;
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;
#endif
#endif

 private:
  using Body = std::function<void(Communicator&)>;

  // Makes a call. `results`: what its future is completed with.
  WorkPtr make(c10d::OpType type, const char* call_name, const Tensors& inputs, Tensors results,
               bool asynchronous, std::chrono::milliseconds timeout,
               std::function<void(const CallOptions&)> body);
  [[nodiscard]] CallOptions options_for(bool asynchronous, std::chrono::milliseconds timeout) const;
  // For calls, which are made before shutdown() takes it away.
  Communicator& communicator();
  // For other threads; null after shutdown().
  [[nodiscard]] std::shared_ptr<Communicator> current() const;
  void abort_calls(const std::string& reason);
  // The backend for this tensor, or for the first of these; null if it is in host memory, and so
  // for this backend.
  BasePtr for_device_of(const at::Tensor& tensor);
  BasePtr for_device_of(const Tensors& tensors);
  [[nodiscard]] BasePtr for_devices_if_made() const;

  std::string name_;
  std::atomic<std::chrono::milliseconds> timeout_;
  Others others_;
  c10::intrusive_ptr<c10d::Store> store_;
  BasePtr messages_;
  std::mutex making_;         // held while for_devices_ is made
  mutable std::mutex mutex_;  // of what follows
  BasePtr for_devices_;
  std::shared_ptr<Communicator>
      communicator_;  // only shutdown() changes it, as a call of the runner
  std::atomic<std::uint64_t> sequence_ = 0;
  Runner runner_;  // last, so that what is queued ends before the communicator does
};

}  // namespace rondo::torch_backend

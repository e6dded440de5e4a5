#include "backend.hpp"

#include <ATen/ATen.h>
#include <ATen/ThreadLocalState.h>

#include <rondo/errors.hpp>

#include <algorithm>
#include <exception>
#include <mutex>
#include <set>
#include <utility>

#include "allocator.hpp"
#include "joining.hpp"
#include "tensors.hpp"

namespace rondo::torch_backend {
namespace {

// A call that goes on, or has ended.
class RondoWork final : public c10d::Work {
 public:
  RondoWork(int rank, c10d::OpType type, const char* title, const Tensors& inputs, Tensors results)
      : Work(rank, type, title, inputs),
        results_(std::move(results)),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()))) {}

  void end(std::exception_ptr error) {
    if (error) {
      future_->setError(error);
    } else {
      future_->markCompleted(c10::IValue(results_));
    }
    finish(std::move(error));
  }

  std::vector<at::Tensor> result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  Tensors results_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// What profilers show. They keep the pointer, so titles live for ever.
const char* title_of(const std::string& backend, const char* call) {
  static std::mutex mutex;
  static auto* const titles = new std::set<std::string>();
  const std::lock_guard lock(mutex);
  return titles->insert(backend + ":" + call).first->c_str();
}

template <class Options>
bool asynchronous([[maybe_unused]] const Options& options) {
  if constexpr (requires { options.asyncOp; }) {
    return options.asyncOp;
  } else {
    return true;
  }
}

}  // namespace

RondoBackend::RondoBackend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                           std::chrono::milliseconds timeout, Others others, std::string name)
    : Base(rank, size),
      name_(std::move(name)),
      timeout_(timeout),
      others_(std::move(others)),
      store_(store),
      messages_(others_.for_messages(store, rank, size, timeout)) {
  communicator_ = std::make_shared<Communicator>(join(store, rank, size, timeout));
}

RondoBackend::~RondoBackend() = default;

Communicator& RondoBackend::communicator() {
  TORCH_CHECK(communicator_ != nullptr, "rondo: the process group was shut down");
  return *communicator_;
}

CallOptions RondoBackend::options_for(bool asynchronous, std::chrono::milliseconds timeout) const {
  CallOptions options;
  options.timeout = timeout.count() > 0 ? timeout : timeout_.load();
  options.background = asynchronous;
  return options;
}

WorkPtr RondoBackend::make(c10d::OpType type, const char* call_name, const Tensors& inputs,
                           Tensors results, bool asynchronous, std::chrono::milliseconds timeout,
                           std::function<void(const CallOptions&)> body) {
  communicator();
  ++sequence_;
  auto work = c10::make_intrusive<RondoWork>(getRank(), type, title_of(name_, call_name), inputs,
                                             std::move(results));
  const auto outcome = std::make_shared<std::exception_ptr>();
  Task task;
  task.call = [this, outcome, body = std::move(body), state = at::ThreadLocalState(),
               options = options_for(asynchronous, timeout)] {
    const at::ThreadLocalStateGuard as_the_caller(state);
    const at::NoGradGuard no_grad;
    try {
      body(options);
    } catch (const UsageError&) {  // on all ranks alike: the group goes on
      *outcome = std::current_exception();
    } catch (const std::exception& error) {
      // This rank may not have made its call; so that its next one does not meet this one of
      // others.
      abort_calls(error.what());
      *outcome = std::current_exception();
    } catch (...) {
      abort_calls("a call failed");
      *outcome = std::current_exception();
    }
  };
  task.tell = [work, outcome] { work->end(*outcome); };
  if (asynchronous) {
    runner_.start(std::move(task));
  } else {
    runner_.run(std::move(task));
  }
  return work;
}

void RondoBackend::abort_calls(const std::string& reason) {
  const auto communicator = current();
  if (communicator && !communicator->ended()) communicator->abort(reason);
}

std::shared_ptr<Communicator> RondoBackend::current() const {
  const std::lock_guard lock(mutex_);
  return communicator_;
}

BasePtr RondoBackend::for_devices_if_made() const {
  const std::lock_guard lock(mutex_);
  return for_devices_;
}

BasePtr RondoBackend::for_device_of(const Tensors& tensors) {
  return tensors.empty() ? BasePtr() : for_device_of(tensors[0]);
}

BasePtr RondoBackend::for_device_of(const at::Tensor& tensor) {
  if (tensor.device().is_cpu()) return {};
  const std::lock_guard one_makes(making_);
  if (BasePtr made = for_devices_if_made()) return made;
  BasePtr made = others_.for_devices(store_, getRank(), getSize(), timeout_.load());
  const std::lock_guard lock(mutex_);
  for_devices_ = made;
  return made;
}

WorkPtr RondoBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  if (const auto other = for_device_of(tensors)) return other->broadcast(tensors, options);
  const at::Tensor& tensor = only(tensors, "broadcast");
  const auto root = static_cast<int>(options.rootRank);
  return make(c10d::OpType::BROADCAST, "broadcast", tensors, tensors, asynchronous(options),
              options.timeout, [this, tensor, root](const CallOptions& with) {
                const Dense dense(tensor);
                communicator().run(moving(Collective::broadcast, dense.data(), dense.data(),
                                          bytes(tensor), root, with));
                if (getRank() != root) dense.copy_back();
              });
}

WorkPtr RondoBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  if (const auto other = for_device_of(tensors)) return other->allreduce(tensors, options);
  if (tensors.size() == 1 && tensors[0].is_sparse()) return allreduce_sparse(tensors, options);
  const at::Tensor& tensor = only(tensors, "all_reduce");
  Call call;
  call.collective = Collective::all_reduce;
  call.type = type_of(tensor);
  call.op = op_of(options.reduceOp);
  call.count = elements(tensor);
  return make(c10d::OpType::ALLREDUCE, "all_reduce", tensors, tensors, asynchronous(options),
              options.timeout, [this, tensor, call](const CallOptions& with) mutable {
                const Dense dense(tensor);
                call.in = call.out = dense.data();
                call.options = with;
                communicator().run(call);
                dense.copy_back();
              });
}

WorkPtr RondoBackend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
#if !defined(TORCH_OF_1)
  if (const auto other = for_device_of(tensors)) return other->allreduce_sparse(tensors, options);
#endif
  return messages_->allreduce(tensors, options);
}

WorkPtr RondoBackend::allreduce_coalesced(Tensors& tensors,
                                          const c10d::AllreduceCoalescedOptions& options) {
  if (const auto other = for_device_of(tensors))
    return other->allreduce_coalesced(tensors, options);
  TORCH_CHECK(!tensors.empty(), "rondo: all_reduce_coalesced takes at least one tensor");
  for (const at::Tensor& tensor : tensors) {
    require_host_memory(tensor, "all_reduce_coalesced");
    TORCH_CHECK(tensor.scalar_type() == tensors[0].scalar_type(),
                "rondo: all_reduce_coalesced: tensors must all have the same type");
  }
  const DataType type = type_of(tensors[0]);
  const ReduceOp op = op_of(options.reduceOp);
  return make(c10d::OpType::ALLREDUCE_COALESCED, "all_reduce", tensors, tensors,
              asynchronous(options), options.timeout,
              [this, tensors, type, op](const CallOptions& with) {
                std::vector<Dense> dense;
                std::vector<Communicator::Part> parts;
                for (const at::Tensor& tensor : tensors) {
                  dense.emplace_back(tensor);
                  parts.push_back({dense.back().data(), elements(tensor)});
                }
                communicator().run_coalesced(std::move(parts), type, op, with);
                for (const Dense& one : dense) one.copy_back();
              });
}

WorkPtr RondoBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  if (const auto other = for_device_of(tensors)) return other->reduce(tensors, options);
  const at::Tensor& tensor = only(tensors, "reduce");
  Call call;
  call.collective = Collective::reduce;
  call.type = type_of(tensor);
  call.op = op_of(options.reduceOp);
  call.count = elements(tensor);
  call.root = static_cast<int>(options.rootRank);
  return make(c10d::OpType::REDUCE, "reduce", tensors, tensors, asynchronous(options),
              options.timeout, [this, tensor, call](const CallOptions& with) mutable {
                const Dense dense(tensor);
                call.in = call.out = dense.data();
                call.options = with;
                communicator().run(call);
                if (getRank() == call.root) dense.copy_back();
              });
}

WorkPtr RondoBackend::allgather(TensorLists& outputs, Tensors& inputs,
                                const c10d::AllgatherOptions& options) {
  if (const auto other = for_device_of(inputs)) return other->allgather(outputs, inputs, options);
  const at::Tensor& input = only(inputs, "all_gather");
  const Tensors& list = only(outputs, static_cast<std::size_t>(getSize()), "all_gather");
  require_same_sizes(list, input, "all_gather");
  return make(c10d::OpType::ALLGATHER, "all_gather", inputs, list, asynchronous(options),
              options.timeout, [this, input, list](const CallOptions& with) {
                const Dense own(input);
                const at::Tensor all = room_for(list);
                communicator().run(moving(Collective::all_gather, own.data(), all.data_ptr(),
                                          bytes(all), 0, with));
                copy_parts(all, list);
              });
}

WorkPtr RondoBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                      const c10d::AllgatherOptions& options) {
  if (const auto other = for_device_of(input))
    return other->_allgather_base(output, input, options);
  require_gathered(output, input, getSize());
  return make(c10d::OpType::_ALLGATHER_BASE, "all_gather", {input}, {output}, asynchronous(options),
              options.timeout, [this, output, input](const CallOptions& with) {
                gather_to_all(communicator(), output, input, with);
              });
}

WorkPtr RondoBackend::allgather_coalesced(TensorLists& output_lists, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) {
  if (const auto other = for_device_of(inputs))
    return other->allgather_coalesced(output_lists, inputs, options);
  // Both torch's orders of lists: one list for each rank, of one tensor for each input.
  const auto ranks = static_cast<std::size_t>(getSize());
  TORCH_CHECK(output_lists.size() == ranks, "rondo: all_gather_coalesced takes ", ranks,
              " lists, one for each rank, not ", output_lists.size());
  Tensors results;
  for (const Tensors& list : output_lists) {
    TORCH_CHECK(list.size() == inputs.size(), "rondo: all_gather_coalesced: a list has ",
                list.size(), " tensors, and there are ", inputs.size(), " inputs");
    for (std::size_t i = 0; i < list.size(); ++i) {
      require_host_memory(list[i], "all_gather_coalesced");
      TORCH_CHECK(
          list[i].sizes() == inputs[i].sizes() && list[i].scalar_type() == inputs[i].scalar_type(),
          "rondo: all_gather_coalesced: an output differs from its input in size or type");
      results.push_back(list[i]);
    }
  }
  return make(c10d::OpType::ALLGATHER_COALESCED, "all_gather", inputs, results,
              asynchronous(options), options.timeout,
              [this, output_lists, inputs](const CallOptions& with) {
                for (std::size_t i = 0; i < inputs.size(); ++i) {
                  Tensors list;
                  for (const Tensors& of_rank : output_lists) list.push_back(of_rank[i]);
                  const Dense own(inputs[i]);
                  const at::Tensor all = room_for(list);
                  communicator().run(moving(Collective::all_gather, own.data(), all.data_ptr(),
                                            bytes(all), 0, with));
                  copy_parts(all, list);
                }
              });
}

WorkPtr RondoBackend::gather(TensorLists& outputs, Tensors& inputs,
                             const c10d::GatherOptions& options) {
  if (const auto other = for_device_of(inputs)) return other->gather(outputs, inputs, options);
  const at::Tensor& input = only(inputs, "gather");
  const auto root = static_cast<int>(options.rootRank);
  const bool is_root = getRank() == root;
  TORCH_CHECK(is_root || outputs.empty(), "rondo: gather: outputs are for the root alone");
  const Tensors list =
      is_root ? only(outputs, static_cast<std::size_t>(getSize()), "gather") : Tensors();
  require_same_sizes(list, input, "gather");
  return make(c10d::OpType::GATHER, "gather", inputs, list, asynchronous(options), options.timeout,
              [this, input, list, root](const CallOptions& with) {
                const Dense own(input);
                const at::Tensor all = list.empty() ? at::Tensor() : room_for(list);
                communicator().run(
                    moving(Collective::gather, own.data(), list.empty() ? nullptr : all.data_ptr(),
                           bytes(input) * static_cast<std::size_t>(getSize()), root, with));
                if (!list.empty()) copy_parts(all, list);
              });
}

WorkPtr RondoBackend::scatter(Tensors& outputs, TensorLists& inputs,
                              const c10d::ScatterOptions& options) {
  if (const auto other = for_device_of(outputs)) return other->scatter(outputs, inputs, options);
  const at::Tensor& output = only(outputs, "scatter");
  const auto root = static_cast<int>(options.rootRank);
  const bool is_root = getRank() == root;
  TORCH_CHECK(is_root || inputs.empty(), "rondo: scatter: inputs are for the root alone");
  const Tensors list =
      is_root ? only(inputs, static_cast<std::size_t>(getSize()), "scatter") : Tensors();
  require_same_sizes(list, output, "scatter");
  return make(c10d::OpType::SCATTER, "scatter", list, outputs, asynchronous(options),
              options.timeout, [this, output, list, root](const CallOptions& with) {
                const Dense own(output);
                const at::Tensor all = list.empty() ? at::Tensor() : joined(list);
                communicator().run(
                    moving(Collective::scatter, list.empty() ? nullptr : all.data_ptr(), own.data(),
                           bytes(output) * static_cast<std::size_t>(getSize()), root, with));
                own.copy_back();
              });
}

WorkPtr RondoBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                     const c10d::ReduceScatterOptions& options) {
  if (const auto other = for_device_of(outputs))
    return other->reduce_scatter(outputs, inputs, options);
  const at::Tensor& output = only(outputs, "reduce_scatter");
  const Tensors& list = only(inputs, static_cast<std::size_t>(getSize()), "reduce_scatter");
  TORCH_CHECK(list[static_cast<std::size_t>(getRank())].numel() == output.numel(),
              "rondo: reduce_scatter: the output differs in size from this rank's input");
  for (const at::Tensor& tensor : list) {
    TORCH_CHECK(tensor.scalar_type() == output.scalar_type(),
                "rondo: reduce_scatter: tensors of different types");
  }
  Call call;
  call.collective = Collective::reduce_scatter;
  call.type = type_of(output);
  call.op = op_of(options.reduceOp);
  return make(c10d::OpType::REDUCE_SCATTER, "reduce_scatter", list, outputs, asynchronous(options),
              options.timeout, [this, output, list, call](const CallOptions& with) mutable {
                std::vector<std::size_t> counts;
                for (const at::Tensor& tensor : list) counts.push_back(elements(tensor));
                const at::Tensor all = joined(list);
                const Dense own(output);
                call.in = all.data_ptr();
                call.out = own.data();
                call.count = elements(all);
                call.counts = counts.data();
                call.options = with;
                communicator().run(call);
                own.copy_back();
              });
}

WorkPtr RondoBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                           const c10d::ReduceScatterOptions& options) {
  if (const auto other = for_device_of(input))
    return other->_reduce_scatter_base(output, input, options);
  require_scattered(output, input, getSize());
  type_of(output);
  const ReduceOp op = op_of(options.reduceOp);
  return make(c10d::OpType::_REDUCE_SCATTER_BASE, "reduce_scatter", {input}, {output},
              asynchronous(options), options.timeout,
              [this, output, input, op](const CallOptions& with) {
                scatter_reduced(communicator(), output, input, op, with);
              });
}

WorkPtr RondoBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                    std::vector<int64_t>& output_sizes,
                                    std::vector<int64_t>& input_sizes,
                                    const c10d::AllToAllOptions& options) {
  if (const auto other = for_device_of(input))
    return other->alltoall_base(output, input, output_sizes, input_sizes, options);
  require_host_memory(output, "all_to_all_single");
  require_host_memory(input, "all_to_all_single");
  TORCH_CHECK(output.scalar_type() == input.scalar_type(),
              "rondo: all_to_all_single: input and output differ in type");
  const auto ranks = static_cast<std::size_t>(getSize());
  const auto sent = parts_of(input, input_sizes, ranks);
  const auto received = parts_of(output, output_sizes, ranks);
  return make(c10d::OpType::ALLTOALL_BASE, "all_to_all", {input}, {output}, asynchronous(options),
              options.timeout, [this, output, input, sent, received](const CallOptions& with) {
                const Dense from(input);
                const Dense to(output);
                exchange(communicator(), from.data(), sent, to.data(), received, with);
                to.copy_back();
              });
}

WorkPtr RondoBackend::alltoall(Tensors& outputs, Tensors& inputs,
                               const c10d::AllToAllOptions& options) {
  if (const auto other = for_device_of(inputs)) return other->alltoall(outputs, inputs, options);
  const auto ranks = static_cast<std::size_t>(getSize());
  TORCH_CHECK(outputs.size() == ranks && inputs.size() == ranks, "rondo: all_to_all takes ", ranks,
              " inputs and outputs, not ", inputs.size(), " and ", outputs.size());
  for (const Tensors* list : {&outputs, &inputs}) {
    for (const at::Tensor& tensor : *list) {
      require_host_memory(tensor, "all_to_all");
      TORCH_CHECK(tensor.scalar_type() == inputs[0].scalar_type(),
                  "rondo: all_to_all: tensors of different types");
    }
  }
  return make(c10d::OpType::ALLTOALL, "all_to_all", inputs, outputs, asynchronous(options),
              options.timeout, [this, outputs, inputs](const CallOptions& with) {
                std::vector<std::size_t> sent;
                std::vector<std::size_t> received;
                for (const at::Tensor& tensor : inputs) sent.push_back(bytes(tensor));
                for (const at::Tensor& tensor : outputs) received.push_back(bytes(tensor));
                const at::Tensor from = joined(inputs);
                const at::Tensor to = room_for(outputs);
                exchange(communicator(), from.data_ptr(), sent, to.data_ptr(), received, with);
                copy_parts(to, outputs);
              });
}

WorkPtr RondoBackend::barrier(const c10d::BarrierOptions& options) {
  // Those who name devices want their streams to wait, too.
  if (!options.device_ids.empty()) {
    if (const auto other = for_devices_if_made()) return other->barrier(options);
  }
  return make(c10d::OpType::BARRIER, "barrier", {}, {}, asynchronous(options), options.timeout,
              [this](const CallOptions& with) { communicator().barrier(with); });
}

WorkPtr RondoBackend::send(Tensors& tensors, int to, int tag) {
  if (const auto other = for_device_of(tensors)) return other->send(tensors, to, tag);
  return messages_->send(tensors, to, tag);
}
WorkPtr RondoBackend::recv(Tensors& tensors, int from, int tag) {
  if (const auto other = for_device_of(tensors)) return other->recv(tensors, from, tag);
  return messages_->recv(tensors, from, tag);
}
WorkPtr RondoBackend::recvAnysource(Tensors& tensors, int tag) {
  if (const auto other = for_device_of(tensors)) return other->recvAnysource(tensors, tag);
  return messages_->recvAnysource(tensors, tag);
}
void RondoBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  messages_->monitoredBarrier(options, wait_all_ranks);
}

#if !defined(TORCH_OF_1)
WorkPtr RondoBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                      const c10d::AllgatherOptions& options) {
  if (const auto other = for_device_of(inputs))
    return other->allgather_into_tensor_coalesced(outputs, inputs, options);
  const std::size_t count = inputs.size();
  TORCH_CHECK(outputs.size() == count && count > 0,
              "rondo: all_gather_into_tensor_coalesced takes as many outputs as inputs");
  for (std::size_t i = 0; i < count; ++i) require_gathered(outputs[i], inputs[i], getSize());
  return make(c10d::OpType::_ALLGATHER_BASE, "all_gather", inputs, outputs, asynchronous(options),
              options.timeout, [this, outputs, inputs](const CallOptions& with) {
                for (std::size_t i = 0; i < inputs.size(); ++i) {
                  gather_to_all(communicator(), outputs[i], inputs[i], with);
                }
              });
}

WorkPtr RondoBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                      const c10d::ReduceScatterOptions& options) {
  if (const auto other = for_device_of(inputs))
    return other->reduce_scatter_tensor_coalesced(outputs, inputs, options);
  const std::size_t count = inputs.size();
  TORCH_CHECK(outputs.size() == count && count > 0,
              "rondo: reduce_scatter_tensor_coalesced takes as many outputs as inputs");
  for (std::size_t i = 0; i < count; ++i) {
    require_scattered(outputs[i], inputs[i], getSize());
    type_of(outputs[i]);
  }
  const ReduceOp op = op_of(options.reduceOp);
  return make(c10d::OpType::_REDUCE_SCATTER_BASE, "reduce_scatter", inputs, outputs,
              asynchronous(options), options.timeout,
              [this, outputs, inputs, op](const CallOptions& with) {
                for (std::size_t i = 0; i < inputs.size(); ++i) {
                  scatter_reduced(communicator(), outputs[i], inputs[i], op, with);
                }
              });
}
#endif

#if defined(C10D_BACKEND_HAS_HOOKS)
WorkPtr RondoBackend::gather_single(at::Tensor& output, at::Tensor& input,
                                    const c10d::GatherOptions& options) {
  if (const auto other = for_device_of(input)) return other->gather_single(output, input, options);
  require_host_memory(input, "gather_single");
  const auto root = static_cast<int>(options.rootRank);
  const bool is_root = getRank() == root;
  if (is_root) {
    require_host_memory(output, "gather_single");
    TORCH_CHECK(output.numel() == input.numel() * getSize(),
                "rondo: gather_single: the output must have the input's size times the number of "
                "ranks");
  }
  return make(
      c10d::OpType::GATHER, "gather", {input}, {output}, asynchronous(options), options.timeout,
      [this, output, input, root, is_root](const CallOptions& with) {
        const Dense own(input);
        const std::size_t all = bytes(input) * static_cast<std::size_t>(getSize());
        if (!is_root) {
          communicator().run(moving(Collective::gather, own.data(), nullptr, all, root, with));
          return;
        }
        const Dense to(output);
        communicator().run(moving(Collective::gather, own.data(), to.data(), all, root, with));
        to.copy_back();
      });
}

BasePtr RondoBackend::split(const c10::intrusive_ptr<c10d::Store>& store,
                            const std::vector<int>& ranks,
                            const c10::intrusive_ptr<Options>& options) {
  const auto own = std::find(ranks.begin(), ranks.end(), getRank());
  if (own == ranks.end()) return nullptr;
  const auto rank = static_cast<int>(own - ranks.begin());
  const auto timeout = options ? options->timeout : timeout_.load();
  return c10::make_intrusive<RondoBackend>(store->clone(), rank, static_cast<int>(ranks.size()),
                                           timeout, others_, name_);
}

// Torch asks with the index of a device, which is below 0 for host memory.
bool RondoBackend::supportsTensorAlloc(c10::DeviceIndex device) { return device < 0; }

at::Tensor RondoBackend::allocateTensor(long size, at::TensorOptions options) {
  if (!options.device().is_cpu()) return at::empty({size}, options);
  auto data =
      reachable_allocator().allocate(static_cast<std::size_t>(size) * options.dtype().itemsize());
  void* const memory = data.get();
  const auto held = std::make_shared<c10::DataPtr>(std::move(data));
  return at::from_blob(memory, {size}, [held](void*) {}, options);
}

c10::intrusive_ptr<c10d::Backend::Options> RondoBackend::getBackendOptions() {
  return c10::make_intrusive<Options>("rondo", timeout_.load());
}

c10d::ErrorType RondoBackend::getError() {
  if (const auto other = for_devices_if_made()) {
    const c10d::ErrorType error = other->getError();
    if (error != c10d::ErrorType::SUCCESS) return error;
  }
  const auto communicator = current();
  return communicator && communicator->ended() ? c10d::ErrorType::COMM_ERROR
                                               : c10d::ErrorType::SUCCESS;
}

void RondoBackend::abort() {
  abort_calls("torch.distributed has aborted the process group");
  messages_->abort();
  if (const auto other = for_devices_if_made()) other->abort();
}

void RondoBackend::shutdown() {
  // After what is queued.
  runner_.run({[this] {
                 std::shared_ptr<Communicator> last;
                 const std::lock_guard lock(mutex_);
                 last.swap(communicator_);
               },
               [] {}});
  messages_->shutdown();
  if (const auto other = for_devices_if_made()) other->shutdown();
}

void RondoBackend::setTimeout(std::chrono::milliseconds timeout) {
  timeout_ = timeout;
  messages_->setTimeout(timeout);
  if (const auto other = for_devices_if_made()) other->setTimeout(timeout);
}
#endif

}  // namespace rondo::torch_backend

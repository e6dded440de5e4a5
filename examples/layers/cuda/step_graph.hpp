// CUDA graphs of whole steps.
#pragma once

#include <mutex>

#include "handles.hpp"

namespace lenet::cuda {

// A whole step, captured once and replayed.
class StepGraph {
 public:
  template <class Enqueue>
  StepGraph(cudaStream_t stream, Enqueue&& enqueue) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
      enqueue();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph));
    // The reducer's kernels keep their stream's priority.
    const cudaError_t code =
        cudaGraphInstantiate(&executable_, graph, cudaGraphInstantiateFlagUseNodePriority);
    cudaGraphDestroy(graph);
    check(code);
    check(cudaGraphUpload(executable_, stream));
    check(cudaStreamSynchronize(stream));
  }
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;
  ~StepGraph() { cudaGraphExecDestroy(executable_); }
  // One thread at a time: see what join() says of ranks that are threads and share a device.
  void launch(cudaStream_t stream) const {
    static std::mutex mutex;
    const std::lock_guard turn(mutex);
    check(cudaGraphLaunch(executable_, stream));
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace lenet::cuda

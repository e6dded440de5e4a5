// Starts a kernel. Tests have another file of this name, by which kernels run on the host.
#pragma once

#include <cuda_runtime_api.h>

namespace lenet::cuda {

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), std::size_t blocks, unsigned threads,
            cudaStream_t stream, Arguments... arguments) {
  kernel<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(arguments...);
}

}  // namespace lenet::cuda

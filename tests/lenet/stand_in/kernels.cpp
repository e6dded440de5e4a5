// The trainer's kernels, for the host.
#include "launch.hpp"

#include "examples/lenet/cuda/kernels.cu"

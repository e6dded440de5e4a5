// The trainer's kernels, for the host.
#include "launch.hpp"

#include "examples/layers/cuda/kernels.cu"

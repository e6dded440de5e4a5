// Sets how many OpenMP threads the calling thread's computations use; does nothing in a build
// without OpenMP.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

namespace lenet {

inline void use_compute_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
}

}  // namespace lenet

// The compute threads of the calling thread's work, where OpenMP has them.
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

// The functions of MPI that Rondo takes over, for counts of any size: int_counts.cpp and
// large_counts.cpp give them MPI's names.
#pragma once

#include <mpi.h>

#include <cstddef>

#define RONDO_OF_MPI __attribute__((visibility("default")))

namespace rondo::mpi_programs {

// Hands a call on to MPI, as the program made it. A view of a function object.
class HandOn {
 public:
  template <class Call>
  // NOLINTNEXTLINE(google-explicit-constructor,misc-explicit-constructor): a lambda of the caller's
  HandOn(const Call& call)
      : call_(&call), run_([](const void* what) { return (*static_cast<const Call*>(what))(); }) {}
  int operator()() const { return run_(call_); }

 private:
  const void* call_;
  int (*run_)(const void*);
};

// One number for each rank, as a program passes them: counts, or places.
class Counts {
 public:
  explicit Counts(const int* values) : ints_(values) {}
  template <class Large>
  explicit Counts(const Large* values) : large_(values), get_(value_at<Large>) {}

  [[nodiscard]] bool given() const { return ints_ != nullptr || large_ != nullptr; }
  std::ptrdiff_t operator[](int rank) const {
    return ints_ != nullptr ? ints_[rank] : get_(large_, rank);
  }

 private:
  template <class Large>
  static std::ptrdiff_t value_at(const void* values, int rank) {
    return static_cast<std::ptrdiff_t>(static_cast<const Large*>(values)[rank]);
  }

  const int* ints_ = nullptr;
  const void* large_ = nullptr;
  std::ptrdiff_t (*get_)(const void*, int) = nullptr;
};

int barrier(MPI_Comm comm, HandOn hand_on);
int broadcast(void* data, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm,
              HandOn hand_on);
int all_gather(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
               MPI_Count out_count, MPI_Datatype out_type, MPI_Comm comm, HandOn hand_on);
int all_gather_v(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
                 Counts out_counts, Counts places, MPI_Datatype out_type, MPI_Comm comm,
                 HandOn hand_on);
int gather(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out, MPI_Count out_count,
           MPI_Datatype out_type, int root, MPI_Comm comm, HandOn hand_on);
int gather_v(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out, Counts out_counts,
             Counts places, MPI_Datatype out_type, int root, MPI_Comm comm, HandOn hand_on);
int scatter(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
            MPI_Count out_count, MPI_Datatype out_type, int root, MPI_Comm comm, HandOn hand_on);
int scatter_v(const void* in, Counts in_counts, Counts places, MPI_Datatype in_type, void* out,
              MPI_Count out_count, MPI_Datatype out_type, int root, MPI_Comm comm, HandOn hand_on);
int all_to_all(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
               MPI_Count out_count, MPI_Datatype out_type, MPI_Comm comm, HandOn hand_on);
int all_to_all_v(const void* in, Counts in_counts, Counts in_places, MPI_Datatype in_type,
                 void* out, Counts out_counts, Counts out_places, MPI_Datatype out_type,
                 MPI_Comm comm, HandOn hand_on);
int all_reduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm, HandOn hand_on);
int iall_reduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm, MPI_Request* request, HandOn hand_on);
int reduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
           MPI_Comm comm, HandOn hand_on);
int reduce_scatter(const void* in, void* out, Counts counts, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, HandOn hand_on);
int reduce_scatter_block(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm, HandOn hand_on);

}  // namespace rondo::mpi_programs

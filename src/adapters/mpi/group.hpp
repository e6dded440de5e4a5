// The communicators of an MPI program, and Rondo's beside them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <rondo/communicator.hpp>

#include "adapters/mpi/completions.hpp"

namespace rondo::mpi_programs {

// While it lives, this thread is inside Rondo, whose own calls of MPI are handed on as they are.
class Inside {
 public:
  Inside() { ++depth(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { --depth(); }
  static bool is() { return depth() > 0; }

 private:
  static int& depth() {
    thread_local int depth = 0;
    return depth;
  }
};

// An attribute of a communicator of the program, which lives as long as that.
class Group {
 public:
  Group(MPI_Comm comm, int rank, int size);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  // The group of `comm`; null if its calls are always handed on: it is an intercommunicator, has
  // one rank, or ranks that are not in MPI_COMM_WORLD and so may run without this library; or it is
  // no communicator; or this thread is inside Rondo.
  static Group* of(MPI_Comm comm);

  [[nodiscard]] MPI_Comm comm() const { return comm_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool has(int rank) const { return rank >= 0 && rank < size_; }
  // Whether Rondo makes a collective in which `bytes` travel from or to a rank. All ranks ask in
  // the same calls, with the same bytes, and so get the same answer. Joins the ranks, in a call
  // that comes late enough or is large enough that joining pays.
  bool takes(std::size_t bytes);
  // The same for a call that goes on in the background. It does not wait for other ranks, so it
  // never joins them.
  bool takes_in_background(std::size_t bytes);

  // After takes().
  Communicator& communicator() { return *communicator_; }
  Completions& completions();

 private:
  void join();
  void give_up(const std::string& why);

  MPI_Comm comm_;
  int rank_;
  int size_;
  std::size_t worth_ = 0;
  bool given_up_ = false;
  bool spans_hosts_ = false;
  bool any_thread_ = false;  // all ranks have MPI_THREAD_MULTIPLE
  // Of the same ranks, for messages of Rondo's; MPI_COMM_NULL unless any_thread_.
  MPI_Comm messages_ = MPI_COMM_NULL;
  std::optional<Communicator> communicator_;
  std::unique_ptr<Completions> completions_;  // made when first used; ends before the communicator
};

}  // namespace rondo::mpi_programs

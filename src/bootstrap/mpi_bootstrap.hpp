#pragma once

#include <mpi.h>

#include "bootstrap/bootstrap.hpp"

namespace rondo::detail {

class MpiBootstrap final : public Bootstrap {
 public:
  explicit MpiBootstrap(MPI_Comm comm);  // borrows

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  void all_gather(const void* mine, void* all, std::size_t bytes) override;

 private:
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace rondo::detail

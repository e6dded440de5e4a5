// What Rondo made of an MPI program's calls, and what it handed on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace rondo::mpi_programs {

enum class Function : std::uint8_t {
  all_reduce,
  iall_reduce,
  reduce,
  reduce_scatter,
  reduce_scatter_block,
  broadcast,
  all_gather,
  all_gather_v,
  gather,
  gather_v,
  scatter,
  scatter_v,
  all_to_all,
  all_to_all_v,
  barrier
};
inline constexpr int kFunctions = 15;

// Counted if RONDO_MPI_SUMMARY is set to something other than 0. Any thread may note calls.
class Summary {
 public:
  static Summary& of_process();

  [[nodiscard]] bool wanted() const { return wanted_; }
  void note(Function function, bool by_rondo, std::size_t bytes,
            std::chrono::steady_clock::duration took);
  void note_given_up(const std::string& why);
  // To standard error; on rank 0 of MPI_COMM_WORLD.
  void print() const;

 private:
  Summary();

  struct Counts {
    std::atomic<std::uint64_t> calls = 0;
    std::atomic<std::uint64_t> bytes = 0;
    std::atomic<std::int64_t> ns = 0;
  };
  struct Line {
    Counts by_rondo;
    Counts handed_on;
  };
  bool wanted_;
  Line lines_[kFunctions];
  mutable std::mutex mutex_;
  std::string given_up_;
};

// Notes a call when it ends.
class NotedCall {
 public:
  NotedCall(Function function, bool by_rondo, std::size_t bytes)
      : summary_(Summary::of_process()), function_(function), by_rondo_(by_rondo), bytes_(bytes) {
    if (summary_.wanted()) begin_ = std::chrono::steady_clock::now();
  }
  NotedCall(const NotedCall&) = delete;
  NotedCall& operator=(const NotedCall&) = delete;
  ~NotedCall() {
    if (!summary_.wanted()) return;
    summary_.note(function_, by_rondo_, bytes_, std::chrono::steady_clock::now() - begin_);
  }

 private:
  Summary& summary_;
  Function function_;
  bool by_rondo_;
  std::size_t bytes_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace rondo::mpi_programs

// Ranks as forked processes, joined without MPI.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

#include "bootstrap/bootstrap.hpp"

namespace rondo::test {

// A blackboard in memory that is mapped before the fork: everyone writes a blob, then waits for all.
class ForkBootstrap final : public detail::Bootstrap {
 public:
  static constexpr std::size_t kMostBytes = 4096;
  static constexpr int kMostRanks = 8;
  struct Board {
    std::atomic<int> written = 0;
    std::atomic<int> read = 0;
    char blobs[kMostRanks][kMostBytes] = {};
  };

  static Board* make_board() {
    void* memory =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return new (memory) Board;
  }

  ForkBootstrap(Board& board, int rank, int size) : board_(board), rank_(rank), size_(size) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  void all_gather(const void* mine, void* all, std::size_t bytes) override {
    if (bytes > kMostBytes) throw std::length_error("blob");
    ++round_;
    std::memcpy(board_.blobs[rank_], mine, bytes);
    board_.written.fetch_add(1);
    while (board_.written.load() < round_ * size_) ::sched_yield();
    for (int rank = 0; rank < size_; ++rank) {
      std::memcpy(static_cast<char*>(all) + static_cast<std::size_t>(rank) * bytes,
                  board_.blobs[rank], bytes);
    }
    board_.read.fetch_add(1);
    while (board_.read.load() < round_ * size_) ::sched_yield();
  }

 private:
  Board& board_;
  int rank_;
  int size_;
  int round_ = 0;
};

// Runs `body` in `size` forked processes, which must make no threads before; returns their exit codes,
// 200 for one that ended by a signal.
inline std::vector<int> run_forked(int size, const std::function<int(ForkBootstrap&)>& body) {
  ForkBootstrap::Board* board = ForkBootstrap::make_board();
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ForkBootstrap bootstrap(*board, rank, size);
      int code = 201;
      try {
        code = body(bootstrap);
      } catch (...) {
      }
      ::_exit(code);
    }
    children.push_back(child);
  }
  std::vector<int> codes;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 200);
  }
  ::munmap(board, sizeof(ForkBootstrap::Board));
  return codes;
}

}  // namespace rondo::test

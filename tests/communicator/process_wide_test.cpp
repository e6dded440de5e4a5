// What belongs to the program and to its process stays as it is: signals, reactions to them, limits
// that the process has.

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "base/log.hpp"
#include "base/write_signals.hpp"
#include "memory/shared_memory.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/memory_group.hpp"
#include "tests/support/ucx.hpp"

namespace rondo::test {
namespace {

bool says(const std::exception& error, std::string_view part) {
  const bool found = std::string_view(error.what()).find(part) != std::string_view::npos;
  if (!found) std::fprintf(stderr, "'%s' lacks '%s'\n", error.what(), std::string(part).c_str());
  return found;
}

// The hexadecimal mask of signals that a thread blocks.
std::string blocked_by(const std::filesystem::path& task) {
  std::ifstream status(task / "status");
  for (std::string word; status >> word;) {
    if (word != "SigBlk:") continue;
    status >> word;
    return word;
  }
  return {};
}

// Of all threads but the calling one.
std::vector<std::string> blocked_by_others() {
  std::vector<std::string> masks;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::gettid())) continue;
    masks.push_back(blocked_by(task.path()));
  }
  return masks;
}

// Whether all other threads, at least `least`, block all signals that a faulty instruction does not
// cause.
bool others_block_all(std::size_t least) {
  const std::vector<std::string> masks = blocked_by_others();
  for (const std::string& mask : masks) {
    std::uint64_t not_blocked = (1ULL << 31U) | (1ULL << 32U) | (1ULL << 33U);  // the C library's
    for (const int signal : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
      not_blocked |= 1ULL << static_cast<unsigned>(signal - 1);
    }
    if ((std::stoull(mask, nullptr, 16) | not_blocked) == ~std::uint64_t{0}) continue;
    std::fprintf(stderr, "a thread blocks only %s\n", mask.c_str());
    return false;
  }
  if (masks.size() < least) std::fprintf(stderr, "%zu other threads\n", masks.size());
  return masks.size() >= least;
}

TEST(ProcessWide, ThreadsBlockAllSignals) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm = from_socket(me.socket, me.rank, me.size);
    std::vector<float> data(1000, 1.0F);
    comm.all_reduce_async(data).wait();
    std::vector<float> gradient(1000, 1.0F);
    GradientOptions options;
    options.overlap = true;
    GradientReducer reducer(comm, {Parameter::gradient_only("a", gradient)}, options);
    return others_block_all(2) ? 0 : 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

void own_reaction(int /*signal*/) {}

TEST(ProcessWide, UcxLeavesSignalsToTheProgram) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  const FreePort port;
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE}) std::signal(signal, own_reaction);
    Communicator comm = from_store(port.url(), me.rank, me.size, {.carrier = CarrierChoice::ucx});
    comm.barrier();
    if (!others_block_all(1)) return 1;
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE}) {
      struct sigaction now{};
      ::sigaction(signal, nullptr, &now);
      if (now.sa_handler != own_reaction) return 2;
    }
    struct sigaction now{};
    ::sigaction(SIGILL, nullptr, &now);
    comm.barrier();
    return now.sa_handler == SIG_DFL ? 0 : 3;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// The system sends SIGXFSZ, which would end the process.
TEST(ProcessWide, ALimitOfFileSizesIsAnError) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    const rlimit small{4096, 4096};
    if (me.rank == 0) ::setrlimit(RLIMIT_FSIZE, &small);
    try {
      from_socket(me.socket, me.rank, me.size);
    } catch (const TransportError& error) {
      return says(error, "rank 0") && says(error, "ulimit -f") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(ProcessWide, TheSignalOfThatLimitIsKeptForTheProgramThatHasSentIt) {
  sigset_t limit;
  ::sigemptyset(&limit);
  ::sigaddset(&limit, SIGXFSZ);
  ::pthread_sigmask(SIG_BLOCK, &limit, nullptr);
  {
    const detail::WriteSignalsHeld held;
  }
  ::raise(SIGXFSZ);
  {
    const detail::WriteSignalsHeld held;
  }
  const timespec now{};
  EXPECT_EQ(::sigtimedwait(&limit, nullptr, &now), SIGXFSZ);
  EXPECT_EQ(::sigtimedwait(&limit, nullptr, &now), -1);
  ::pthread_sigmask(SIG_UNBLOCK, &limit, nullptr);
}

// Nobody reads the pipe any more into which the log goes, because the user asked for it by
// RONDO_LOG.
TEST(ProcessWide, ALogThatNobodyReadsEndsNoRank) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    ::setenv("RONDO_LOG", "info", 1);
    int line[2];
    if (::pipe(line) != 0) return 1;
    ::dup2(line[1], STDERR_FILENO);
    ::close(line[0]);
    if (!detail::log_enabled(LogLevel::info)) return 2;
    from_socket(me.socket, me.rank, me.size).barrier();
    return ::write(STDERR_FILENO, "x", 0) == 0 ? 0 : 3;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// Else its host would seem to be another one.
TEST(ProcessWide, ARankThatCannotTellItsHostForWantOfADescriptorSaysSo) {
#ifdef RONDO_TEST_UNDEFINED_SANITIZER
  GTEST_SKIP() << "the undefined-behaviour sanitizer needs descriptors of its own";
#endif
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    const int next = ::dup(0);
    ::close(next);
    rlimit few{};
    ::getrlimit(RLIMIT_NOFILE, &few);
    few.rlim_cur = static_cast<rlim_t>(next) + 1;  // for the socket by which it joins
    if (me.rank == 1) ::setrlimit(RLIMIT_NOFILE, &few);
    try {
      from_socket(me.socket, me.rank, me.size);
    } catch (const Error& error) {
      return says(error, "rank 1") && says(error, "ulimit -n") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// The limit of threads does not hold for root, and ranks must belong to one user.
bool be_no_root(const ForkedRank& me) {
  if (::geteuid() != 0) return true;
  constexpr uid_t kNobodyElse = 30'017;
  ::chmod(me.socket.substr(0, me.socket.rfind('/')).c_str(), 0777);
  return ::setresuid(kNobodyElse, kNobodyElse, kNobodyElse) == 0;
}

TEST(ProcessWide, AThreadThatCannotBeStartedIsAnErrorOfAll) {
#ifdef RONDO_TEST_SANITIZER
  GTEST_SKIP() << "sanitizers have threads of their own";
#endif
  for (const bool reducer : {false, true}) {
    const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
      if (!be_no_root(me)) return 5;
      Communicator comm = from_socket(me.socket, me.rank, me.size);
      comm.barrier();
      const rlimit none{0, 0};
      if (me.rank == 1 && ::setrlimit(RLIMIT_NPROC, &none) != 0) return 6;
      std::vector<float> data(1000, 1.0F);
      GradientOptions options;
      options.overlap = true;
      try {
        if (reducer) GradientReducer(comm, {Parameter::gradient_only("a", data)}, options);
        if (!reducer) comm.all_reduce_async(data).wait();
      } catch (const TransportError& error) {
        return me.rank == 1 && says(error, "ulimit -u") ? 0 : 1;
      } catch (const PeerError& error) {
        return me.rank == 0 && says(error, "rank 1") && says(error, "ulimit -u") ? 0 : 2;
      }
      return 3;
    });
    EXPECT_EQ(codes, (std::vector<int>{0, 0})) << reducer;
  }
}

// The piece of one rank fits; that of a second does not.
TEST(ProcessWide, RanksThatTogetherAskForMoreMemoryThanThereIsGetAnError) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = from_socket(me.socket, me.rank, me.size);
    std::vector<std::uint64_t> room = {~std::uint64_t{0}};
    for (const detail::MemoryLimit& limit : detail::memory_limits()) {
      room[0] = std::min(room[0], limit.room_bytes);
    }
    comm.broadcast(room, 0);
    int refused = 0;
    RegisteredMemory<std::uint8_t> memory;
    try {
      memory = RegisteredMemory<std::uint8_t>(room[0] / 10 * 7);
    } catch (const TransportError& error) {
      if (!says(error, "KiB are left")) return 1;
      refused = 1;
    }
    std::vector<int> all = {refused};
    comm.all_reduce(all);  // all have asked, and one has its memory
    const RegisteredMemory<std::uint8_t> little(1 << 20);
    return all[0] == 2 ? 0 : 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

// All reserve what the same call needs, at the same moment: 30 pieces, each of which fits.
TEST(ProcessWide, RanksThatReserveInOneCallGetAnErrorAndAreNotKilled) {
#ifdef RONDO_TEST_SANITIZER
  GTEST_SKIP() << "sanitizers take memory of their own from what the control group leaves";
#endif
  constexpr int kRanks = 6;
  const MemoryGroup group;
  if (!group.made()) GTEST_SKIP() << "needs to make a control group of version 1 for memory";
  constexpr int kRefused = 77;
  for (int round = 0; round < 12; ++round) {
    if (!group.lift_limit()) GTEST_SKIP() << "may not change a limit of memory";
    const std::vector<int> codes = run_forked(kRanks, [&](const ForkedRank& me) {
      if (!group.enter()) return kRefused;
      Communicator comm = from_socket(me.socket, me.rank, me.size);
      std::vector<float> in(std::size_t{kRanks} * 100'000, 1.0F);
      std::vector<float> out(in.size());
      comm.barrier();
      std::vector<int> limited = {me.rank != 0 || group.leave_room_for(std::uint64_t{9} << 20U)};
      comm.all_reduce(limited, ReduceOp::min);
      if (limited[0] == 0) return kRefused;
      try {
        comm.all_to_all(in, out);
      } catch (const TransportError& error) {
        return says(error, "KiB are left in the control group") ? 0 : 1;
      } catch (const PeerError& error) {
        return says(error, "KiB are left in the control group") ? 0 : 2;
      }
      return 3;
    });
    if (codes[0] == kRefused) GTEST_SKIP() << "may not use a control group for memory";
    EXPECT_EQ(codes, std::vector<int>(kRanks, 0));
  }
}

TEST(ProcessWide, SplitWithoutADescriptorSaysWhoLacksIt) {
#ifdef RONDO_TEST_UNDEFINED_SANITIZER
  GTEST_SKIP() << "the undefined-behaviour sanitizer needs descriptors of its own";
#endif
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm = from_socket(me.socket, me.rank, me.size);
    comm.barrier();
    const int next = ::dup(0);
    ::close(next);
    rlimit full{};
    ::getrlimit(RLIMIT_NOFILE, &full);
    full.rlim_cur = static_cast<rlim_t>(next);
    if (me.rank == 1) ::setrlimit(RLIMIT_NOFILE, &full);
    try {
      static_cast<void>(comm.split(0));
    } catch (const TransportError& error) {
      return says(error, "rank 1") && says(error, "Too many open files") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// UCX would end the process.
TEST(ProcessWide, UcxWithoutDescriptorsIsAnErrorOfAll) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
#ifdef RONDO_TEST_UNDEFINED_SANITIZER
  GTEST_SKIP() << "the undefined-behaviour sanitizer needs descriptors of its own";
#endif
  for (const rlim_t left : {6U, 12U, 20U, 28U}) {
    const FreePort port;
    const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
      ::setenv("UCX_MEM_EVENTS", "no", 1);
      static_cast<void>(local_group(1));  // looks at the machine, which takes descriptors
      const int next = ::dup(0);
      ::close(next);
      rlimit few{};
      ::getrlimit(RLIMIT_NOFILE, &few);
      few.rlim_cur = static_cast<rlim_t>(next) + left;
      if (me.rank == 1) ::setrlimit(RLIMIT_NOFILE, &few);
      try {
        from_store(port.url(), me.rank, me.size, {.carrier = CarrierChoice::ucx});
      } catch (const TransportError& error) {
        return says(error, "rank 1") && says(error, "ulimit -n") ? 0 : 1;
      }
      return 2;
    });
    EXPECT_EQ(codes, (std::vector<int>{0, 0})) << left;
  }
}

// The program has not called all_gather.
TEST(ProcessWide, ErrorsNameTheFunctionThatTheProgramCalled) {
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    Communicator comm = from_socket(me.socket, me.rank, me.size);
    const std::string function = "a part of split";
    try {
      if (me.rank == 1) comm.barrier();
      static_cast<void>(comm.split(0));
    } catch (const MismatchError& error) {
      return says(error, function) &&
                     std::string_view(error.what()).find("all_gather") == std::string_view::npos
                 ? 0
                 : 1;
    } catch (const PeerError& error) {
      return says(error, function) ? 0 : 2;
    }
    return 3;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// Nor broadcasts and barriers, of which making a reducer and its timeline consist.
TEST(ProcessWide, ErrorsOfReducersNameTheFunctionThatTheProgramCalled) {
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    Communicator comm = from_socket(me.socket, me.rank, me.size);
    std::vector<float> gradient(100);
    GradientOptions options;
    options.trace = true;
    GradientReducer reducer(comm, {Parameter::gradient_only("a", gradient)}, options);
    try {
      if (me.rank == 0) reducer.write_trace(me.socket + ".trace");
      if (me.rank == 1) {
        reducer.mark_ready(0);
        reducer.finish();
      }
    } catch (const Error& error) {
      return says(error, "write_trace") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// Also the calls by which a reducer is made have the reducer's deadline.
TEST(ProcessWide, MakingAReducerHasItsOwnDeadline) {
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    Communicator comm = from_socket(me.socket, me.rank, me.size);
    const std::string done = me.socket + ".done";
    if (me.rank == 1) {
      while (::access(done.c_str(), F_OK) != 0) std::this_thread::yield();
      ::unlink(done.c_str());
      return 0;
    }
    std::vector<float> gradient(100);
    GradientOptions options;
    options.timeout = std::chrono::milliseconds(300);
    int code = 2;
    try {
      const GradientReducer reducer(comm, {Parameter::gradient_only("a", gradient)}, options);
    } catch (const TimeoutError& error) {
      code = says(error, "making a GradientReducer") ? 0 : 1;
    }
    std::ofstream(done) << "yes";
    return code;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// The deadline is that of joining, too, so it is not short.
TEST(ProcessWide, ARankWhoseDeadlinePassesInSplitSaysSo) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm =
        from_socket(me.socket, me.rank, me.size,
                    {.timeout = std::chrono::milliseconds(me.rank == 0 ? 5'000 : 60'000)});
    comm.barrier();
    try {
      if (me.rank == 0) {
        static_cast<void>(comm.split(0));
      } else {
        std::vector<int> data(10);
        comm.recv(data, 0);
      }
    } catch (const TimeoutError& error) {
      return me.rank == 0 && says(error, "a part of split") ? 0 : 1;
    } catch (const PeerError& error) {
      return me.rank == 1 && says(error, "rank 0") ? 0 : 2;
    }
    return 3;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace rondo::test

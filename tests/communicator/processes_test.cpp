// Processes of one host, joined by shared memory without MPI; and what a process that ends does
// to the others.

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/version.hpp>

#include "base/file_descriptor.hpp"
#include "bootstrap/meeting_point.hpp"
#include "bootstrap/socket_bootstrap.hpp"
#include "carrier/life_sign.hpp"
#include "communicator/state.hpp"
#include "engine/core_share.hpp"
#include "joining/wire.hpp"
#include "tests/support/collective_checks.hpp"
#include "tests/support/control_group.hpp"
#include "tests/support/cut_messenger.hpp"
#include "tests/support/exchange_checks.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/split_checks.hpp"

namespace rondo::test {
namespace {

// A process that its parent has already reaped has no descriptor; poll() would then wait forever.
void wait_for_end(pid_t process) {
  const detail::FileDescriptor alive(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!alive.valid()) return;
  pollfd ended{alive.get(), POLLIN, 0};
  ::poll(&ended, 1, -1);
}

Communicator join(const ForkedRank& me, const CommunicatorOptions& options = {}) {
  return from_socket(me.socket, me.rank, me.size, options);
}

bool says(const std::exception& error, const std::string& part) {
  return std::string_view(error.what()).find(part) != std::string_view::npos;
}

int names_left_in_dev_shm() {
  int count = 0;
  DIR* folder = ::opendir("/dev/shm");
  while (const dirent* entry = ::readdir(folder)) {
    count += std::string_view(entry->d_name).starts_with("rondo-") ? 1 : 0;
  }
  ::closedir(folder);
  return count;
}

TEST(Processes, ShareMemoryWithoutMpi) {
  const int before = names_left_in_dev_shm();
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    Communicator comm = join(me);
    for (const Edge& edge : comm.topology().edges) {
      if (edge.carrier != Carrier::shm) return 1;
    }
    if (names_left_in_dev_shm() > before) return 2;
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::naive}) {
      CollectiveCheck<float>(comm, 100003, ReduceOp::sum, algorithm).all();
    }
    return ::testing::Test::HasFailure() ? 3 : 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

// As a program does that a batch system ends: a thread waits for its signals, and ends the call in
// which the others are.
TEST(Processes, AThreadThatHandlesSignalsAborts) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    std::vector<float> data(1000);
    comm.all_reduce(data);
    std::thread handler;
    if (comm.rank() == 1) {
      handler = std::thread([&] {
        int signal = 0;
        ::sigwait(&signals, &signal);
        comm.abort("the batch system ends this job");
      });
      ::kill(::getpid(), SIGTERM);
    }
    bool told = false;
    try {
      for (;;) comm.all_reduce(data);
    } catch (const PeerError& error) {
      told = says(error, "the batch system ends this job");
    }
    if (handler.joinable()) handler.join();
    return told && comm.ended() ? 0 : 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Processes, OneThatEndsIsNamed) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    std::vector<float> data(100000);
    comm.all_reduce(data);
    if (comm.rank() == 2) ::_exit(7);  // destroys nothing
    try {
      comm.all_reduce(data);
    } catch (const PeerError& error) {
      return says(error, "rank 2") && says(error, "ended") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 7}));
}

TEST(Processes, OneThatIsKilledInMidCallIsNamed) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    std::vector<float> data(1U << 20U);
    try {
      for (int call = 0; call < 1000; ++call) {
        if (comm.rank() == 1 && call == 20) ::raise(SIGKILL);
        comm.all_reduce(data);
      }
    } catch (const PeerError& error) {
      return says(error, "rank 1 (process") && says(error, "ended") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 200, 0}));
}

TEST(Processes, ExchangeMessages) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = join(me, {.slot_bytes = 256, .slots = 2});
    check_exchanges<std::int32_t>(comm, false);
    check_exchanges<std::int32_t>(comm, true);
    return ::testing::Test::HasFailure() ? 3 : 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

TEST(Processes, OneThatIsKilledInAMessageIsNamed) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    std::vector<float> data(1U << 20U);
    try {
      if (me.rank == 0) comm.send(data, 1);
      if (me.rank == 1) {
        comm.recv(std::span(data).first(0), 2);
        ::raise(SIGKILL);
      }
      if (me.rank == 2) {
        comm.send(std::span(data).first(0), 1);
        comm.recv(data, 1);
      }
    } catch (const PeerError& error) {
      return says(error, "rank 1 (process") && says(error, "ended during message 0 from rank") ? 0
                                                                                               : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 200, 0}));
}

// Rank 0 waits for rank 1, which is alive and has not come; rank 2 is dead.
TEST(Processes, OneThatNobodyWaitsForIsNamedWhenItDies) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    comm.barrier();
    if (me.rank == 2) ::raise(SIGKILL);
    // Rank 1 stays alive until rank 0's call has failed.
    if (me.rank == 1) {
      const std::string ended = me.socket + ".ended";
      while (::access(ended.c_str(), F_OK) != 0) std::this_thread::yield();
      ::unlink(ended.c_str());
      return 0;
    }
    const auto start = std::chrono::steady_clock::now();
    int code = 2;
    try {
      std::vector<float> data(10);
      comm.broadcast(data, 0, {.algorithm = Algorithm::naive});  // waits for rank 1 first
    } catch (const PeerError& error) {
      const bool soon = std::chrono::steady_clock::now() - start < std::chrono::seconds(60);
      code = soon && says(error, "rank 2 (process") && says(error, "ended") ? 0 : 1;
    }
    std::ofstream(me.socket + ".ended") << "yes";
    return code;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 200}));
}

// What a rank has sent before its process ends reaches the others, however late they make the call.
TEST(Processes, OneThatHasEndedTheCallIsNotMissed) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    comm.barrier();
    std::vector<float> data(10, static_cast<float>(me.rank + 1));
    if (me.rank == 2) {  // comes last, when rank 1 is gone
      wait_for_end(static_cast<pid_t>(comm.topology().places[1].process_id));
    }
    comm.broadcast(data, 0, {.algorithm = Algorithm::ring});  // rank 1 is in the middle
    if (me.rank == 1) ::_exit(0);
    return data == std::vector<float>(10, 1.0F) ? 0 : 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

TEST(Processes, OneThatHasDestroyedItsCommunicatorIsNamed) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    std::optional<Communicator> comm = join(me, {.timeout = std::chrono::minutes(5)});
    comm->barrier();
    if (me.rank == 1) return 0;
    try {
      comm->barrier();
    } catch (const PeerError& error) {
      return says(error, "rank 1 has destroyed its communicator") || says(error, "ended") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST(Processes, WatchEachOtherWithOneDescriptorForAllCommunicators) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    const auto another = [&](int number) {
      return from_socket(me.socket + std::to_string(number), me.rank, me.size,
                         {.timeout = std::chrono::minutes(5)});
    };
    std::vector<Communicator> many;
    many.push_back(another(0));
    const int of_one = open_descriptors();
    for (int number = 1; number < 10; ++number) many.push_back(another(number));
    if (open_descriptors() != of_one) return 1;
    for (Communicator& comm : many) comm.barrier();
    return 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

// As in a sandbox.
TEST(Processes, MeetAlsoWithoutProc) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may cover /proc";
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/proc", "tmpfs", 0, nullptr) != 0) {
      std::printf("not tried: this machine lets no process cover /proc\n");
      return 0;
    }
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    std::vector<int> values = {me.rank + 1};
    comm.all_reduce(values);
    return values[0] == 3 ? 0 : 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// Rank 1 has no descriptors for the ids of the others' processes, and sees their ends all the same.
TEST(Processes, WatchEachOtherAlsoWithoutDescriptors) {
#ifdef RONDO_TEST_UNDEFINED_SANITIZER
  GTEST_SKIP() << "the undefined-behaviour sanitizer needs descriptors of its own";
#endif
  const std::vector<int> codes = run_forked(5, [](const ForkedRank& me) {
    static_cast<void>(local_group(1));  // looks at the machine, which takes descriptors
    static_cast<void>(detail::life_sign_of_this_process());
    std::string told;
    set_log_hook([&](LogLevel, std::string_view text) { told += text; }, LogLevel::warning);
    if (me.rank == 1) {
      const int next = ::dup(0);
      ::close(next);
      rlimit few{};
      ::getrlimit(RLIMIT_NOFILE, &few);
      few.rlim_cur =
          static_cast<rlim_t>(next) + 4;  // its socket and arena, and those to get shared memory
      ::setrlimit(RLIMIT_NOFILE, &few);
    }
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    comm.barrier();
    if (!told.empty()) return 1;
    if (me.rank == 4) ::raise(SIGKILL);
    try {
      comm.barrier();
    } catch (const PeerError& error) {
      return says(error, "rank 4 (process") && says(error, "ended") ? 0 : 2;
    }
    return 3;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0, 0, 200}));
}

// Of this program, when a test executes it again: it waits before it does anything else.
constexpr const char* kWait = "RONDO_TEST_WAIT";
[[maybe_unused]] const bool kWaited = [] {
  while (std::getenv(kWait) != nullptr) ::pause();
  return true;
}();

// A process of another container; one that executes another program; one that executes its own
// program again.
TEST(Processes, ADeathThatAProcessIdDoesNotShowIsNamed) {
  enum class How { ends_in_another_namespace, executes, executes_itself };
  for (const How how : {How::ends_in_another_namespace, How::executes, How::executes_itself}) {
    const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
      if (me.rank == 1 && how == How::ends_in_another_namespace) {
        if (::unshare(CLONE_NEWPID) != 0) return 77;
        const pid_t inside = ::fork();
        if (inside > 0) {
          ::waitpid(inside, nullptr, 0);
          return 0;
        }
      }
      Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
      comm.barrier();
      if (me.rank == 1 && how == How::ends_in_another_namespace) {
        // The first process of a namespace is not ended by signals of its own.
        ::syscall(SYS_exit_group, 9);
      }
      if (me.rank == 1 && how == How::executes_itself) {
        ::setenv(kWait, "yes", 1);
        ::execl("/proc/self/exe", "processes", nullptr);
      }
      if (me.rank == 1) ::execlp("sleep", "sleep", "1000", nullptr);
      const auto start = std::chrono::steady_clock::now();
      try {
        comm.barrier();
      } catch (const PeerError& error) {
        if (how != How::ends_in_another_namespace) {
          ::kill(static_cast<pid_t>(comm.topology().places[1].process_id), SIGKILL);
        }
        const bool soon = std::chrono::steady_clock::now() - start < std::chrono::seconds(60);
        return soon && says(error, "rank 1 (process") && says(error, "ended") ? 0 : 1;
      }
      return 2;
    });
    if (codes[1] == 77) {
      std::printf("not tried: only root may make a namespace of processes\n");
      continue;
    }
    EXPECT_EQ(codes, (std::vector<int>{0, how == How::ends_in_another_namespace ? 0 : 200}));
  }
}

// Their numbers become those of the program's own: half of them readable, as a pidfd is whose
// process has ended.
TEST(Processes, AProgramMayCloseAllDescriptors) {
  for (const bool goes_on : {false, true}) {
    const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
      Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
      comm.barrier();
      ::closefrom(3);
      int pair[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
      if (::send(pair[1], "x", 1, 0) != 1) return 1;
      constexpr int kMost = 64;
      for (int number = pair[1] + 1; number < kMost; ++number) ::dup2(pair[number % 2], number);
      // Long enough for a look at all ranks.
      const auto late = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
      while (me.rank == 1 && std::chrono::steady_clock::now() < late) std::this_thread::yield();
      comm.barrier();
      if (goes_on) comm = comm.duplicate();
      comm.barrier();
      if (me.rank == 1) ::_exit(7);
      try {
        comm.barrier();
      } catch (const PeerError& error) {
        return says(error, "rank 1 (process") && says(error, "ended") ? 0 : 2;
      }
      return 3;
    });
    EXPECT_EQ(codes, (std::vector<int>{0, 7})) << goes_on;
  }
}

// The first send to a process that has ended is refused at once.
TEST(Processes, OneThatEndsWhileTheyJoinIsNamed) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    detail::SocketBootstrap bootstrap(detail::meet_at_path(me.socket), me.rank, me.size,
                                      std::chrono::minutes(5));
    const std::vector<pid_t> processes = bootstrap.exchange(::getpid());
    if (me.rank == 0) ::_exit(200);
    wait_for_end(processes[0]);
    try {
      bootstrap.exchange(1);
    } catch (const TransportError& error) {
      return says(error, "rank 1 has lost rank 0 while joining") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{200, 0}));
}

TEST(Processes, ARefusalIsToldToAll) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    detail::SocketBootstrap bootstrap(detail::meet_at_path(me.socket), me.rank, me.size,
                                      std::chrono::minutes(5));
    try {
      detail::wire_processes(bootstrap, {}, me.rank == 1 ? "no timeout given" : "", {});
    } catch (const UsageError& error) {
      return says(error, "rank 1: no timeout given") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Processes, ATuningThatCannotBeReadIsAnErrorOfAll) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    // Only rank 0's setting is used, whatever the others have.
    ::setenv("RONDO_TUNING", me.rank == 0 ? "/nowhere" : "/nowhere/else", 1);
    try {
      join(me, {.timeout = std::chrono::minutes(5)});
    } catch (const UsageError& error) {
      return says(error, "rank 0: RONDO_TUNING: cannot read /nowhere") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

bool bind_to_core(std::size_t nth) {
  cpu_set_t mine;
  ::sched_getaffinity(0, sizeof(mine), &mine);
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &mine) || nth-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return ::sched_setaffinity(0, sizeof(one), &one) == 0;
  }
  return false;
}

// Ranks bound to one core must not spin, however many cores the machine has.
TEST(Processes, KnowWhetherTheyHaveCoresEnough) {
  for (const bool share : {true, false}) {
    const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
      if (!bind_to_core(share ? 0 : static_cast<std::size_t>(me.rank))) return 77;
      detail::SocketBootstrap bootstrap(detail::meet_at_path(me.socket), me.rank, me.size,
                                        std::chrono::minutes(5));
      return detail::wire_processes(bootstrap, {}, "", {}).waiting.crowded == share ? 0 : 1;
    });
    if (codes[1] == 77) GTEST_SKIP() << "needs two cores";
    EXPECT_EQ(codes, (std::vector<int>{0, 0})) << share;
  }
}

detail::Waiting waiting_of(Communicator& comm) { return detail::state_of(comm).wiring.waiting; }

// A part of a communicator shares its cores with the other parts.
TEST(Processes, OfAPartKnowThatTheWholeLacksCores) {
  for (const bool share : {true, false}) {
    const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
      if (!bind_to_core(share ? 0 : static_cast<std::size_t>(me.rank))) return 77;
      Communicator comm = join(me);
      std::optional<Communicator> alone = comm.split(me.rank);
      return waiting_of(*alone).crowded == share ? 0 : 1;
    });
    if (codes[1] == 77) GTEST_SKIP() << "needs two cores";
    EXPECT_EQ(codes, (std::vector<int>{0, 0})) << share;
  }
}

TEST(Processes, KnowWhetherTheirControlGroupLetsAllWork) {
  constexpr int kRefused = 77;
  const ControlGroupOfTest group("cpu", "cpu.cfs_quota_us");
  if (!group.made()) GTEST_SKIP() << "needs to make a control group of version 1 for cpu";
  for (const bool is_short : {true, false}) {
    const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
      const char* quota = is_short ? "190000" : "200000";
      const bool set = group.write("cpu.cfs_period_us", "100000") &&
                       group.write("cpu.cfs_quota_us", quota) && group.enter();
      if (!set) return kRefused;
      Communicator comm = join(me);
      std::optional<Communicator> alone = comm.split(me.rank);
      if (waiting_of(comm).short_of_quota != is_short) return 1;
      if (waiting_of(*alone).short_of_quota != is_short) return 2;
      for (std::uint32_t call = 0; call < 1000; ++call) {
        std::uint32_t sum = call + static_cast<std::uint32_t>(me.rank);
        comm.all_reduce(std::span(&sum, 1));
        if (sum != 2 * call + 1) return 3;
      }
      return 0;
    });
    if (codes[0] == kRefused) GTEST_SKIP() << "may not use a control group for cpu";
    EXPECT_EQ(codes, (std::vector<int>{0, 0})) << is_short;
  }
}

// For a second nothing comes.
TEST(Processes, ThatWaitLeaveTheirCoreToOthers) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm = join(me);
    comm.barrier();
    const auto processor_time = [] {
      timespec time{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    };
    const auto before = processor_time();
    if (me.rank == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
    comm.barrier();
    // Some milliseconds; with sanitizers, more of them.
    return processor_time() - before < std::chrono::milliseconds(300) ? 0 : 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// Rank 0 waits on a core on which another process computes, and learns of that.
TEST(Processes, ThatWaitLearnOfOthersOnTheirCore) {
  const pid_t computes = ::fork();
  if (computes == 0) {
    if (!bind_to_core(0)) ::_exit(1);
    for (;;) {
      asm volatile("");
    }
  }
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    if (!bind_to_core(static_cast<std::size_t>(me.rank))) return 77;
    Communicator comm = join(me);
    int has_learned = 0;
    for (int call = 0; call < 1000 && has_learned == 0; ++call) {
      // What rank 0 waits for: long enough that it yields its core.
      if (me.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      comm.barrier();
      has_learned = detail::core_of_this_thread().is_wanted() ? 1 : 0;
      comm.broadcast(has_learned, 0);
    }
    return has_learned == 1 ? 0 : 1;
  });
  ::kill(computes, SIGKILL);
  ::waitpid(computes, nullptr, 0);
  if (codes[1] == 77) GTEST_SKIP() << "needs two cores";
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Processes, AWrongCarrierOfOneRankIsAnErrorOfAll) {
  for (const CarrierChoice wrong : {CarrierChoice::mpi, static_cast<CarrierChoice>(9)}) {
    const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
      CommunicatorOptions options{.timeout = std::chrono::minutes(5)};
      if (me.rank == 1) options.carrier = wrong;
      try {
        join(me, options);
      } catch (const UsageError& error) {
        return says(error, "rank 1: ") ? 0 : 1;
      }
      return 2;
    });
    EXPECT_EQ(codes, (std::vector<int>{0, 0}));
  }
}

// As two containers do that share a socket.
TEST(Processes, OfTwoHostNamesAreRefusedWithTheReason) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    const std::string host = "rondo-test-" + std::to_string(me.rank);
    if (::unshare(CLONE_NEWUTS) != 0 || ::sethostname(host.c_str(), host.size()) != 0) return 77;
    try {
      join(me, {.timeout = std::chrono::minutes(5)});
    } catch (const TransportError& error) {
      return says(error, "hosts rondo-test-0 and rondo-test-1") ? 0 : 1;
    }
    return 2;
  });
  if (codes[0] == 77) GTEST_SKIP() << "only root may name hosts";
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Processes, ARankThatNeverComesIsNamed) {
  const CommunicatorOptions hasty{.timeout = std::chrono::milliseconds(300)};
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    if (me.rank == 1) return 0;  // rank 0 expects three ranks
    try {
      from_socket(me.socket, 0, 3, hasty);
    } catch (const TimeoutError& error) {
      return says(error, "did not come: 1, 2") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
  EXPECT_THROW(from_socket("/tmp/rondo-nobody-is-here", 1, 2, hasty), TimeoutError);
}

// All ranks that have come are told which rank has not.
TEST(Processes, ARankThatNeverComesIsNamedToAll) {
  const std::vector<int> codes = run_forked(4, [&](const ForkedRank& me) {
    if (me.rank == 2) return 0;
    try {
      join(me, {.timeout = std::chrono::milliseconds(5000)});
    } catch (const TimeoutError& error) {
      return says(error, "did not come: 2") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0, 0}));
}

// A connection to where rank 0 listens.
detail::FileDescriptor visit(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  for (;;) {
    detail::FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
        0) {
      return socket;
    }
    std::this_thread::yield();
  }
}

// Four strangers connect: one sends nothing and stays, one leaves at once, one sends a part of a
// message, and one sends a message that no rank sends.
TEST(Processes, StrangersDoNotKeepRanksFromJoining) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    std::vector<detail::FileDescriptor> strangers;
    if (me.rank == 1) {
      for (int kind = 0; kind < 4; ++kind) {
        detail::FileDescriptor stranger = visit(me.socket);
        const std::string text(kind == 2 ? 3 : 100, 'x');
        if (kind >= 2 && ::send(stranger.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0)
          return 1;
        if (kind != 1) strangers.push_back(std::move(stranger));
      }
    }
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    std::vector<int> ones(1000, 1);
    comm.all_reduce(ones);
    return ones == std::vector<int>(1000, 3) ? 0 : 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

constexpr uid_t kNobodyUser = 65534;

// A process of another user may be the first to listen at the socket. It must not get access to
// what a rank reads and writes.
TEST(Processes, AnotherUsersSocketIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    if (me.rank == 0) {
      ::chmod(me.socket.substr(0, me.socket.rfind('/')).c_str(), 0777);
      if (::setresuid(kNobodyUser, kNobodyUser, kNobodyUser) != 0) return 77;
      try {
        join(me, {.timeout = std::chrono::milliseconds(5000)});
      } catch (const TimeoutError& error) {
        return says(error, "did not come: 1") ? 0 : 1;
      }
      return 2;
    }
    try {
      join(me, {.timeout = std::chrono::minutes(5)});
    } catch (const TransportError& error) {
      return says(error, "does not trust") && says(error, "belongs to user 65534") ? 0 : 3;
    }
    return 4;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// The other way round: a process of another user connects to the socket and sends the message of
// rank 1. Rank 0 closes that connection; the real rank 1 joins afterwards.
TEST(Processes, AnotherUsersRankIsSentAway) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    const std::string tried = me.socket + ".tried";
    if (me.rank == 2) {
      const detail::FileDescriptor first = visit(me.socket);  // rank 0 listens
      ::chmod(me.socket.substr(0, me.socket.rfind('/')).c_str(), 0777);
      ::chmod(me.socket.c_str(), 0777);
      if (::setresuid(kNobodyUser, kNobodyUser, kNobodyUser) != 0) return 77;
      const detail::FileDescriptor stranger = visit(me.socket);
      const struct {
        std::uint64_t magic = 0x32306F646E6F7271U;
        std::int32_t rank = 1;
        std::int32_t size = 2;
      } hello;
      static_cast<void>(::send(stranger.get(), &hello, sizeof(hello), MSG_NOSIGNAL));
      std::byte answer{};
      const bool sent_away = ::recv(stranger.get(), &answer, 1, 0) <= 0;
      std::ofstream(tried) << "yes";
      return sent_away ? 0 : 1;
    }
    if (me.rank == 1) {
      while (::access(tried.c_str(), F_OK) != 0) std::this_thread::yield();
      ::unlink(tried.c_str());
    }
    Communicator comm = from_socket(me.socket, me.rank, 2, {.timeout = std::chrono::minutes(5)});
    comm.barrier();
    return 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

TEST(Processes, TheSocketIsItsOwnersAloneWhateverTheUmask) {
  for (const mode_t mask : {0U, 0777U}) {
    const std::vector<int> codes = run_forked(2, [mask](const ForkedRank& me) {
      if (me.rank == 0) {
        ::umask(mask);
      } else {
        const detail::FileDescriptor stranger = visit(me.socket);
        struct stat facts{};
        if (::stat(me.socket.c_str(), &facts) != 0 || (facts.st_mode & 0777U) != 0600U) return 1;
      }
      join(me, {.timeout = std::chrono::minutes(5)});
      return 0;
    });
    EXPECT_EQ(codes, (std::vector<int>{0, 0})) << mask;
  }
}

TEST(Processes, TheLongestTimeoutIsNotPastAtOnce) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    join(me, {.timeout = std::chrono::milliseconds::max()}).barrier();
    return 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Processes, WrongRanksAreRefused) {
  const CommunicatorOptions hasty{.timeout = std::chrono::milliseconds(50)};
  EXPECT_THROW(from_socket("/tmp/rondo-x", 2, 2, hasty), UsageError);
  EXPECT_THROW(from_socket("/tmp/rondo-x", -1, 2, hasty), UsageError);
  EXPECT_THROW(from_socket("/tmp/rondo-x", 0, 0, hasty), UsageError);
  EXPECT_THROW(from_socket("", 0, 1), UsageError);
  EXPECT_THROW(from_socket(std::string(200, 'x'), 0, 1), UsageError);
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    try {
      from_socket(me.socket, me.rank == 2 ? 1 : me.rank, 3, {.timeout = std::chrono::seconds(20)});
    } catch (const UsageError& error) {
      return says(error, "each of which comes once") ? 0 : 1;
    }
    return 3;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

TEST(Processes, ToldOfDifferentSizesAreRefused) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    try {
      from_socket(me.socket, me.rank, me.rank == 0 ? 2 : 3, {.timeout = std::chrono::minutes(5)});
    } catch (const UsageError& error) {
      return says(error, "rank 1 of 3, but rank 0 was told of 2 ranks") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// Rank 0 says what another release would say, in the first exchange of all ranks.
TEST(Processes, OfTwoReleasesAreRefused) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    if (me.rank == 0) {
      detail::SocketBootstrap bootstrap(detail::meet_at_path(me.socket), me.rank, me.size,
                                        std::chrono::minutes(5));
      std::array<char, 64> other{};
      const std::string_view text = "rondorel0.9.9/7";
      std::copy(text.begin(), text.end(), other.begin());
      const std::array<char, 64> theirs = bootstrap.exchange(other)[1];
      return std::string_view(theirs.data()).starts_with("rondorel" RONDO_VERSION) ? 0 : 1;
    }
    try {
      join(me, {.timeout = std::chrono::minutes(5)});
    } catch (const UsageError& error) {
      return says(error, "rank 0 is Rondo 0.9.9/7") && says(error, "rank 1 is Rondo " RONDO_VERSION)
                 ? 0
                 : 2;
    }
    return 3;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// A pump that cannot be made stands for whatever fails on one rank alone.
TEST(Processes, AFailureOfOneRankIsAnErrorOfAll) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    detail::SocketBootstrap bootstrap(detail::meet_at_path(me.socket), me.rank, me.size,
                                      std::chrono::minutes(5));
    const auto make_pump = [&](const detail::PumpEdges&) -> std::unique_ptr<detail::Pump> {
      if (me.rank == 0) throw TransportError("no pump today");
      return nullptr;
    };
    try {
      detail::wire_processes(bootstrap, {.carrier = CarrierChoice::mpi}, {},
                             {.carrier = Carrier::mpi,
                              .probe = [](int, int) { return detail::LinkFacts{}; },
                              .make_pump = make_pump});
    } catch (const TransportError& error) {
      return says(error, "rank 0") && says(error, "no pump today") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Processes, ANetworkThatFailsEndsTheCallAndTheCommunicator) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    std::string told;
    set_log_hook([&](LogLevel, std::string_view text) { told += text; }, LogLevel::warning);
    detail::SocketBootstrap bootstrap(detail::meet_at_path(me.socket), me.rank, me.size,
                                      std::chrono::minutes(5));
    detail::Wiring wiring = detail::wire_processes(
        bootstrap, {.carrier = CarrierChoice::mpi}, {},
        {.carrier = Carrier::mpi,
         .probe = [](int, int) { return detail::LinkFacts{}; },
         .make_pump =
             [&](detail::PumpEdges edges) {
               return std::make_unique<detail::Pump>(
                   std::make_unique<CutMessenger>(std::make_shared<Cable>(), me.rank),
                   std::move(edges));
             }});
    {
      Communicator comm(std::make_unique<detail::CommunicatorState>(
          std::move(wiring), detail::Defaults{}, CommunicatorOptions{}));
      std::vector<float> data(10);
      try {
        comm.all_reduce(data);
        return 1;
      } catch (const TransportError& error) {
        if (!says(error, "all_reduce(10 x f32, sum)") || !says(error, "the cable is cut")) return 2;
      }
      try {
        comm.barrier();
        return 3;
      } catch (const PeerError& error) {
        if (!says(error, "the cable is cut")) return 4;
      }
    }
    set_log_hook({});
    return told.find("nobody answers") != std::string::npos ? 0 : 5;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Processes, AHundredAndTwentyEightOfOneHost) {
  constexpr int kRanks = 128;
  const std::vector<int> codes = run_forked(kRanks, [](const ForkedRank& me) {
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    for (const std::size_t count : {1U, 1000U, 100'000U}) {
      std::vector<int> values(count);
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = exact::input<int>(ReduceOp::sum, me.rank, me.size, i);
      }
      comm.all_reduce(values);
      for (std::size_t i = 0; i < count; ++i) {
        if (values[i] != exact::result<int>(ReduceOp::sum, me.size, i)) return 1;
      }
    }
    std::optional<Communicator> group = comm.split(me.rank % 3);
    std::vector<int> one = {1};
    group->all_reduce(one);
    if (one[0] != (me.size - me.rank % 3 + 2) / 3) return 2;
    std::vector<int> mine(kRanks, me.rank);
    std::vector<int> all(kRanks);
    comm.all_to_all(mine, all);
    for (int rank = 0; rank < kRanks; ++rank) {
      if (all[static_cast<std::size_t>(rank)] != rank) return 3;
    }
    return 0;
  });
  EXPECT_EQ(codes, std::vector<int>(kRanks, 0));
}

// Rank 1 has no address space left for shared memory. Its group, ranks 1 and 3, learns it; the
// other group and the parent go on.
TEST(Processes, AMemberThatCannotJoinFailsItsGroupAlone) {
#ifdef RONDO_TEST_SANITIZER
  GTEST_SKIP() << "sanitizers need address space of their own";
#endif
  const std::vector<int> codes = run_forked(4, [](const ForkedRank& me) {
    Communicator comm = join(me);
    comm.barrier();
    if (me.rank == 1) {
      rlimit none{};
      ::getrlimit(RLIMIT_AS, &none);
      none.rlim_cur = 1;
      if (::setrlimit(RLIMIT_AS, &none) != 0) return 4;
    }
    int code = 0;
    try {
      std::optional<Communicator> group = comm.split(me.rank % 2);
      std::vector<int> one = {1};
      group->all_reduce(one);
      if (me.rank % 2 == 1 || one[0] != 2) code = 1;
    } catch (const TransportError& error) {
      const bool told =
          says(error, "rank 0: cannot map") && says(error, "consist of ranks 1, 3 of");
      if (me.rank % 2 == 0 || !told) code = 2;
    }
    std::vector<int> one = {1};
    comm.all_reduce(one);
    return one[0] == 4 ? code : 3;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0, 0}));
}

// Rank 2 is killed before it comes to split().
TEST(Processes, AMemberThatIsKilledIsNamed) {
  const std::vector<int> codes = run_forked(4, [](const ForkedRank& me) {
    Communicator comm = join(me, {.timeout = std::chrono::minutes(5)});
    comm.barrier();
    if (me.rank == 2) ::raise(SIGKILL);
    try {
      static_cast<void>(comm.split(me.rank % 2));
    } catch (const PeerError& error) {
      return says(error, "rank 2 (process") && says(error, "ended") ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 200, 0}));
}

// Each process has three communicators, each of which is used by a thread of its own, in all kinds
// of calls.
TEST(Processes, SeveralCommunicatorsAreAtWorkAtOnce) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = join(me);
    std::vector<Communicator> several;
    for (int i = 0; i < 3; ++i) several.push_back(comm.duplicate());
    std::vector<std::thread> threads;
    for (Communicator& one : several) {
      threads.emplace_back([&one] {
        for (const std::size_t count : {3U, 1000U, 70'003U}) {
          for (const Algorithm algorithm : {Algorithm::ring, Algorithm::naive}) {
            CollectiveCheck<float>(one, count, ReduceOp::sum, algorithm).all();
          }
          ExchangeCheck<double>(one, count, true).all();
          ExchangeCheck<std::uint8_t>(one, count, false).all();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return ::testing::Test::HasFailure() ? 3 : 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

TEST(Processes, SplitByColorInTheOrderOfKeys) {
  const std::vector<int> codes = run_forked(5, [](const ForkedRank& me) {
    Communicator comm = join(me);
    expect_groups_by_color(comm);
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(codes, std::vector<int>(5, 0));
}

}  // namespace
}  // namespace rondo::test

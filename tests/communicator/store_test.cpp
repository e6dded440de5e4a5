// Processes that meet in a shared folder or at a TCP address: from_store().

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "bootstrap/addresses.hpp"
#include "bootstrap/connect.hpp"
#include "bootstrap/contact.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/sockets.hpp"
#include "communicator/from_store.hpp"
#include "tests/support/collective_checks.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/ucx.hpp"
#include "topology/machine.hpp"

namespace rondo::test {
namespace {

using detail::FileDescriptor;

constexpr std::chrono::minutes kPatient{5};
constexpr std::chrono::milliseconds kHasty{1500};

detail::Attempt connect_to_any(const std::vector<detail::Address>& addresses,
                               detail::Clock::time_point deadline) {
  asio::io_context network(1);
  return detail::connect_to_any(network, addresses, deadline);
}

std::string folder_of(const ForkedRank& me) {
  return std::filesystem::path(me.socket).parent_path().string();
}
std::string contact_of(const ForkedRank& me) { return folder_of(me) + "/rondo-rank-0"; }

CommunicatorOptions within(std::chrono::milliseconds timeout, const std::string& secret = {}) {
  CommunicatorOptions options{.timeout = timeout};
  options.network.secret = secret;
  return options;
}

// Ranks that join and add; 0 if the sum is right.
int join_and_add(const std::string& url, int rank, int size, const CommunicatorOptions& options) {
  Communicator comm = from_store(url, rank, size, options);
  for (const Edge& edge : comm.topology().edges) {
    if (edge.carrier != Carrier::shm) return 50;
  }
  std::vector<int> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i) * (rank + 1);
  comm.all_reduce(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<int>(i) * size * (size + 1) / 2) return 51;
  }
  return 0;
}

// The code of a rank that must get this error: 0 if its text has `part`.
template <class Wanted>
int expect_error(const std::string& part, const std::function<void()>& what) {
  try {
    what();
  } catch (const Wanted& error) {
    return says(error, part) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "another error: %s\n", error.what());
    return 2;
  }
  return 3;
}

TEST(Store, RanksMeetAtAnAddress) {
  for (const char* host : {"127.0.0.1", "localhost", "[::1]"}) {
    const FreePort port(std::string(host) == "[::1]" ? AF_INET6 : AF_INET);
    if (!port.usable()) {
      std::printf("not tried: %s, which this machine does not have\n", host);
      continue;
    }
    const std::string url = "tcp://" + std::string(host) + ":" + port.number();
    const std::vector<int> codes = run_forked(4, [&](const ForkedRank& me) {
      return join_and_add(url, me.rank, me.size, within(kPatient));
    });
    EXPECT_EQ(codes, std::vector<int>(4, 0)) << url;
  }
}

TEST(Store, RanksMeetInAFolderAndLeaveNothing) {
  if (!detail::can_prove()) GTEST_SKIP() << "built without libsodium";
  const std::vector<int> codes = run_forked(4, [&](const ForkedRank& me) {
    if (me.rank == 2) {  // comes when the file is there already
      while (::access(contact_of(me).c_str(), F_OK) != 0) std::this_thread::yield();
    }
    const int code = join_and_add("file://" + folder_of(me), me.rank, me.size, within(kPatient));
    return std::filesystem::is_empty(folder_of(me)) ? code : 52;
  });
  EXPECT_EQ(codes, std::vector<int>(4, 0));
}

TEST(Store, RanksMeetWithASecret) {
  if (!detail::can_prove()) GTEST_SKIP() << "built without libsodium";
  const FreePort port;
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    CommunicatorOptions options = within(kPatient, "the same");
    if (me.rank == 1) {  // from the environment
      options.network.secret.reset();
      ::setenv("RONDO_SECRET", "the same", 1);
    }
    return join_and_add(port.url(), me.rank, me.size, options);
  });
  EXPECT_EQ(codes, std::vector<int>(3, 0));
}

// The rank without the secret knows why at once; the others know who was sent away and who is
// missing.
TEST(Store, AWrongSecretIsAnErrorOnBothSides) {
  if (!detail::can_prove()) GTEST_SKIP() << "built without libsodium";
  for (const std::string wrong : {"wrong", ""}) {
    const FreePort port;
    const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
      const auto join = [&](std::chrono::milliseconds timeout, const std::string& secret) {
        from_store(port.url(), me.rank, me.size, within(timeout, secret));
      };
      if (me.rank == 2) {
        return expect_error<TransportError>(
            wrong.empty() ? "it was given a secret, and this process none" : "another secret",
            [&] { join(kPatient, wrong); });
      }
      return expect_error<TimeoutError>(
          wrong.empty() ? "did not come: 2. Who came: 127.0.0.1:" : "as rank 2 with another secret",
          [&] { join(kHasty, "right"); });
    });
    EXPECT_EQ(codes, std::vector<int>(3, 0)) << wrong;
  }
}

TEST(Store, AnAddressThatOthersReachNeedsASecret) {
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    const std::string url = "tcp://0.0.0.0:" + std::to_string(20000 + me.rank);
    return expect_error<UsageError>("RONDO_SECRET",
                                    [&] { from_store(url, me.rank, 2, within(kPatient)); });
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Store, AnAddressThatOthersReachNeedsNoSecretWhereTheNetworkIsTrusted) {
  const FreePort port;
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    CommunicatorOptions options = within(kPatient);
    options.network.without_secret = true;
    return join_and_add("tcp://0.0.0.0:" + port.number(), me.rank, me.size, options);
  });
  EXPECT_EQ(codes, std::vector<int>(3, 0));
}

TEST(Store, RanksThatDoNotComeAreNamedToAll) {
  const FreePort port;
  const std::vector<int> codes = run_forked(5, [&](const ForkedRank& me) {
    if (me.rank == 2 || me.rank == 3) return 0;
    return expect_error<TimeoutError>(
        "did not come: 2, 3", [&] { from_store(port.url(), me.rank, me.size, within(kHasty)); });
  });
  EXPECT_EQ(codes, std::vector<int>(5, 0));
}

TEST(Store, Rank0ThatDoesNotComeIsNamed) {
  const FreePort port;
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    const std::string url = me.rank == 0 ? port.url() : "file://" + folder_of(me);
    return expect_error<TimeoutError>("for rank 0 at " + url,
                                      [&] { from_store(url, 1, 2, within(kHasty)); });
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// Process 1 is a second rank 0, which comes when the first one listens.
TEST(Store, ASecondRank0IsAnErrorOfBoth) {
  for (const bool in_folder : {false, true}) {
    if (in_folder && !detail::can_prove()) continue;
    const FreePort port;
    const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
      const std::string url = in_folder ? "file://" + folder_of(me) : port.url();
      const auto first_listens = [&] {
        if (in_folder) return ::access(contact_of(me).c_str(), F_OK) == 0;
        const auto patient = detail::deadline_after(kPatient);
        return connect_to_any(port.addresses(), patient).socket.valid();
      };
      while (me.rank == 1 && !first_listens()) std::this_thread::yield();
      return expect_error<UsageError>("as rank 0 of 3",
                                      [&] { from_store(url, 0, 3, within(kPatient)); });
    });
    EXPECT_EQ(codes, (std::vector<int>{0, 0})) << in_folder;
  }
}

// The rank's part in the conversation, up to rank 0's welcome; the socket stays open.
FileDescriptor be_welcomed(const FreePort& port, int rank, int size) {
  const auto patient = detail::deadline_after(kPatient);
  detail::Attempt attempt;
  while (!attempt.socket.valid()) attempt = connect_to_any(port.addresses(), patient);
  const detail::Introduction mine = detail::introduce(false);
  detail::send_all(attempt.socket, &mine, sizeof(mine), patient);
  detail::Reply reply;
  detail::receive_all(attempt.socket, &reply, sizeof(reply), patient);
  const detail::Hello hello{rank, size, 0, {}, {}};
  detail::send_all(attempt.socket, &hello, sizeof(hello), patient);
  detail::receive_all(attempt.socket, &reply, sizeof(reply), patient);
  return std::move(attempt.socket);
}

// Process 1 is welcomed as rank 1 of 3, and then comes again as `rank` of `size`.
void expect_refusal_of_all(int rank, int size, const std::string& part) {
  const FreePort port;
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    if (me.rank == 0) {
      return expect_error<UsageError>(part,
                                      [&] { from_store(port.url(), 0, 3, within(kPatient)); });
    }
    const FileDescriptor first = be_welcomed(port, 1, 3);
    const int code = expect_error<UsageError>(
        part, [&] { from_store(port.url(), rank, size, within(kPatient)); });
    if (code != 0) return code;
    detail::Reply answer;
    detail::receive_all(first, &answer, sizeof(answer), detail::deadline_after(kPatient));
    return expect_error<UsageError>(part, [&] { detail::throw_refusal(answer); });
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Store, ARankThatComesTwiceIsAnErrorOfAll) {
  expect_refusal_of_all(1, 3, "each of which comes once");
}

TEST(Store, AWrongSizeIsAnErrorOfAll) {
  expect_refusal_of_all(2, 4, "rank 2 of 4, but rank 0 was told of 3 ranks");
}

TEST(Store, ARankThatEndsMayComeAgain) {
  const FreePort port;
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    const std::string ended = me.socket + ".ended";
    if (me.rank == 1) {
      be_welcomed(port, 1, 3);  // and closes the connection
      std::ofstream(ended) << "yes";
    }
    while (me.rank == 2 && ::access(ended.c_str(), F_OK) != 0) std::this_thread::yield();
    if (me.rank == 2) ::unlink(ended.c_str());
    return join_and_add(port.url(), me.rank, me.size, within(kPatient));
  });
  EXPECT_EQ(codes, std::vector<int>(3, 0));
}

TEST(Store, ARankThatEndsAndDoesNotComeAgainIsNamed) {
  const FreePort port;
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    if (me.rank == 1) {
      be_welcomed(port, 1, 3);
      return 0;
    }
    return expect_error<TimeoutError>("did not come: 1, 2. Who came: rank 1: it came and left",
                                      [&] { from_store(port.url(), 0, 3, within(kHasty)); });
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

// Process 2 has its place and ends, or says nothing more, when the ranks exchange what they are.
TEST(Store, ARankThatIsLostWhileJoiningIsNamedToAll) {
  for (const bool ends : {true, false}) {
    const FreePort port;
    const std::vector<int> codes = run_forked(4, [&](const ForkedRank& me) {
      if (me.rank == 2) {
        FileDescriptor socket = be_welcomed(port, 2, 4);
        detail::Reply answer;  // all have come
        detail::receive_all(socket, &answer, sizeof(answer), detail::deadline_after(kPatient));
        if (ends) return 0;
        char byte = 0;  // until rank 0 has given up
        while (detail::receive_all(socket, &byte, 1, detail::deadline_after(kPatient)).end ==
               detail::Moved::End::done) {
        }
        return 0;
      }
      const auto join = [&] {
        from_store(port.url(), me.rank, 4, within(ends ? kPatient : kHasty));
      };
      return ends ? expect_error<TransportError>("rank 0 has lost rank 2 while joining", join)
                  : expect_error<TimeoutError>("for rank 2 while joining", join);
    });
    EXPECT_EQ(codes, std::vector<int>(4, 0)) << ends;
  }
}

// A rank 0 that welcomes one rank and ends, while it waits for others.
TEST(Store, Rank0ThatEndsIsNamed) {
  const FreePort port;
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    if (me.rank == 1) {
      return expect_error<TransportError>("rank 1 has lost rank 0 while joining",
                                          [&] { from_store(port.url(), 1, 3, within(kPatient)); });
    }
    const auto patient = detail::deadline_after(kPatient);
    const FileDescriptor listener = detail::listen_at(port.addresses().at(0));
    detail::ready_before(listener, POLLIN, patient);
    const FileDescriptor socket(::accept(listener.get(), nullptr, nullptr));
    detail::ServerHandshake handshake("", {}, detail::introduce(false));
    while (handshake.hello() == nullptr) {
      const std::size_t bytes = handshake.room().size();
      detail::receive_all(socket, handshake.room().data(), bytes, patient);
      const detail::Reply reply = handshake.took(bytes).value();
      detail::send_all(socket, &reply, sizeof(reply), patient);
    }
    return 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Store, StrangersDoNotKeepRanksFromJoining) {
  const FreePort port;
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    std::vector<FileDescriptor> strangers;
    if (me.rank == 1) {
      // More than rank 0 hears at the same time.
      for (int number = 0; number < 200; ++number) {
        detail::Attempt attempt;
        while (!attempt.socket.valid()) {
          attempt = connect_to_any(port.addresses(), detail::deadline_after(kPatient));
        }
        const std::string text(number % 4 == 2 ? 3 : 100, 'x');
        if (number % 4 >= 2) ::send(attempt.socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
        if (number % 4 != 1) strangers.push_back(std::move(attempt.socket));
      }
    }
    return join_and_add(port.url(), me.rank, me.size, within(kPatient));
  });
  EXPECT_EQ(codes, std::vector<int>(3, 0));
}

// Writes a rank 0's contact as one of an earlier run would have left it.
void leave_old_card(const ForkedRank& me, std::uint16_t port) {
  const detail::Contact contact{detail::machine_boot_id(), "of another run", {"127.0.0.1"}, port};
  std::ofstream(contact_of(me)) << to_text(contact);
}

// In the folder is a contact of an earlier run. At its address nobody listens; somebody who takes
// in connections and never says a word; somebody who says what no rank 0 says; the rank 0 of other
// ranks.
TEST(Store, AFileOfAnEarlierRunDoesNoHarm) {
  if (!detail::can_prove()) GTEST_SKIP() << "built without libsodium";
  enum class Listener { nobody, silent, talker, other_first };
  for (const Listener listens :
       {Listener::nobody, Listener::silent, Listener::talker, Listener::other_first}) {
    const FreePort port;
    const std::vector<int> codes = run_forked(4, [&](const ForkedRank& me) {
      const std::string ready = me.socket + ".ready";
      const std::string done = me.socket + ".done";
      const auto wait_for = [](const std::string& path) {
        while (::access(path.c_str(), F_OK) != 0) std::this_thread::yield();
      };
      if (me.rank < 3) {
        wait_for(ready);
        if (me.rank == 0) wait_for(me.socket + ".come");  // rank 1 has met the old file
        if (me.rank == 1) std::ofstream(me.socket + ".come") << "yes";
        const int code = join_and_add("file://" + folder_of(me), me.rank, 3, within(kPatient));
        if (me.rank == 0) std::ofstream(done) << "yes";
        return code;
      }
      leave_old_card(me, port.value());
      int code = 0;
      if (listens == Listener::other_first) {
        // Is still there when the others have joined: its deadline comes later than their first
        // tries.
        std::ofstream(ready) << "yes";
        code = expect_error<TimeoutError>("did not come: 1", [&] {
          from_store(port.url(), 0, 2, within(std::chrono::seconds(3), "of another run."));
        });
      } else {
        FileDescriptor listener;
        if (listens != Listener::nobody) listener = detail::listen_at(port.addresses().at(0));
        std::ofstream(ready) << "yes";
        std::vector<FileDescriptor> taken;
        while (::access(done.c_str(), F_OK) != 0) {
          if (!listener.valid()) continue;
          FileDescriptor one(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
          if (!one.valid()) continue;
          const std::string text(1000, 'z');
          if (listens == Listener::talker)
            ::send(one.get(), text.data(), text.size(), MSG_NOSIGNAL);
          taken.push_back(std::move(one));
        }
      }
      wait_for(done);
      for (const char* end : {".ready", ".done", ".come"}) ::unlink((me.socket + end).c_str());
      return code;
    });
    EXPECT_EQ(codes, std::vector<int>(4, 0)) << static_cast<int>(listens);
  }
}

TEST(Store, AHalfWrittenFileIsNamed) {
  if (!detail::can_prove()) GTEST_SKIP() << "built without libsodium";
  const std::vector<int> codes = run_forked(1, [&](const ForkedRank& me) {
    std::ofstream(contact_of(me)) << "{\"boot\": \"abc\", \"tok";
    const int code = expect_error<TimeoutError>("it is incomplete, or not a file of rank 0", [&] {
      from_store("file://" + folder_of(me), 1, 2, within(kHasty));
    });
    ::unlink(contact_of(me).c_str());
    return code;
  });
  EXPECT_EQ(codes, std::vector<int>{0});
}

// A half-written file, too, is replaced by that of the rank 0 that comes.
TEST(Store, AHalfWrittenFileOfAnEarlierRunDoesNoHarm) {
  if (!detail::can_prove()) GTEST_SKIP() << "built without libsodium";
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    if (me.rank == 0) std::ofstream(contact_of(me)) << "{\"boot\": \"abc\", \"tok";
    return join_and_add("file://" + folder_of(me), me.rank, me.size, within(kPatient));
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Store, AFileOfAnotherUserIsNotTrusted) {
  if (!detail::can_prove()) GTEST_SKIP() << "built without libsodium";
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  const std::vector<int> codes = run_forked(1, [&](const ForkedRank& me) {
    leave_old_card(me, 1);
    constexpr uid_t kNobodyUser = 65534;
    if (::chown(contact_of(me).c_str(), kNobodyUser, kNobodyUser) != 0) return 77;
    const int code = expect_error<TransportError>("belongs to user 65534", [&] {
      from_store("file://" + folder_of(me), 1, 2, within(kPatient));
    });
    ::unlink(contact_of(me).c_str());
    return code;
  });
  EXPECT_EQ(codes, std::vector<int>{0});
}

// In a folder as /tmp is: rank 1 may not read the file, which is its owner's alone, and rank 0 may
// not replace it.
TEST(Store, AFileOfAnotherUserInAFolderForAllIsNamedAtOnce) {
  if (!detail::can_prove()) GTEST_SKIP() << "built without libsodium";
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  for (const int rank : {0, 1}) {
    const std::vector<int> codes = run_forked(1, [&](const ForkedRank& me) {
      leave_old_card(me, 1);
      constexpr mode_t kEverybody = 01777;
      constexpr uid_t kNobodyUser = 65534;
      if (::chmod(contact_of(me).c_str(), S_IRUSR | S_IWUSR) != 0) return 77;
      if (::chmod(folder_of(me).c_str(), kEverybody) != 0) return 77;
      if (::seteuid(kNobodyUser) != 0) return 77;
      const int code = expect_error<TransportError>("belongs to user 0", [&] {
        from_store("file://" + folder_of(me), rank, 2, within(kPatient));
      });
      if (::seteuid(0) != 0) return 77;
      ::unlink(contact_of(me).c_str());
      return code;
    });
    EXPECT_EQ(codes, std::vector<int>{0}) << rank;
  }
}

// A script gives two jobs the same address: rank 0 of one and rank 1 of the other do not join.
TEST(Store, RanksOfTwoRunsDoNotJoinAtOneAddress) {
  if (!detail::can_prove()) GTEST_SKIP() << "built without libsodium";
  const FreePort port;
  for (const std::string place : {"tcp", "unix", "file"}) {
    const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
      const std::string url = place == "tcp"    ? port.url()
                              : place == "unix" ? "unix://" + me.socket + ".runs"
                                                : "file://" + folder_of(me);
      const std::string run = "Slurm step " + std::to_string(me.rank + 1) + ".0";
      // Rank 0 waits for longer, so that rank 1 finds it there also where it begins late.
      const auto join = [&] {
        const auto patience = me.rank == 0 ? 4 * kHasty : 2 * kHasty;
        detail::join_at_store({"", me.rank, 2, url, run, {}}, within(patience));
      };
      if (me.rank == 0) return expect_error<TimeoutError>("did not come: 1", join);
      // A file may be an old one, so that rank goes on looking for another.
      return place == "file" ? expect_error<TimeoutError>("it belongs to another run", join)
                             : expect_error<TransportError>("it belongs to another run", join);
    });
    EXPECT_EQ(codes, (std::vector<int>{0, 0})) << place;
  }
}

// One that was told rank, size and address by hand belongs to no run, and may be with ranks of a
// launcher.
TEST(Store, ARankWithoutARunJoinsThoseOfOne) {
  const FreePort port;
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    const std::string run = me.rank == 1 ? "" : "Slurm step 4711.0";
    Communicator comm =
        detail::join_at_store({"", me.rank, 3, port.url(), run, {}}, within(kPatient));
    std::vector<int> values = {me.rank};
    comm.all_reduce(values);
    return values[0] == 3 ? 0 : 51;
  });
  EXPECT_EQ(codes, std::vector<int>(3, 0));
}

// At a port that a run has computed for itself, and that a group which was started by hand happens
// to use, too.
TEST(Store, ARankWithoutARunDoesNotJoinAtAComputedPort) {
  const FreePort port;
  const FreePort second;
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    if (me.rank == 1) {
      return expect_error<TransportError>("it belongs to another run: Slurm step 1.0",
                                          [&] { from_store(port.url(), 1, 2, within(kPatient)); });
    }
    return expect_error<TimeoutError>("did not come: 1", [&] {
      const detail::LaunchedRank first{
          "", 0, 2, port.url(), "Slurm step 1.0", {port.value(), second.value()}};
      detail::join_at_store(first, within(2 * kHasty));
    });
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Store, AnInterfaceThatRank0LacksIsToldToAllRanks) {
  if (!detail::can_prove()) GTEST_SKIP() << "built without libsodium";
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    CommunicatorOptions options = within(kPatient);
    if (me.rank == 0) options.network.interface = "no-such-0";
    return expect_error<UsageError>(
        "no-such-0", [&] { from_store("file://" + folder_of(me), me.rank, me.size, options); });
  });
  EXPECT_EQ(codes, std::vector<int>(3, 0));
}

// UCX works in no child of a process that has used it.
TEST(Store, AForkedChildOfARankByUcxIsToldThatItCannotJoinByUcx) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  const FreePort port;
  const FreePort other;
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);
    CommunicatorOptions options = within(kPatient);
    options.carrier = CarrierChoice::ucx;
    Communicator comm = from_store(port.url(), me.rank, me.size, options);
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(expect_error<TransportError>("forked from one that uses UCX", [&] {
        from_store(other.url(), me.rank, me.size, options);
      }));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    comm.barrier();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 60;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Store, WhatCannotBeAStoreIsRefusedAtOnce) {
  const auto refuses = [](const std::string& url, int rank, int size) {
    EXPECT_THROW(from_store(url, rank, size, within(kPatient)), UsageError) << url;
  };
  refuses("somewhere", 0, 1);
  refuses("tcp://127.0.0.1", 0, 1);
  refuses("file:///no/such/folder", 0, 1);
  refuses("file:///dev/null", 0, 1);
  refuses("tcp://127.0.0.1:29500", 2, 2);
  for (const char* host :
       {"1.2.3.4.5", "300.1.1.1", "127.1", "[::zz]", "[127.0.0.1]", "a b", "a%b", "a@b"}) {
    refuses(std::string("tcp://") + host + ":29500", 1, 2);
  }
  refuses("tcp://127.0.0.1:29500", -1, 2);
}

// The first address is of a socket that takes in no more connections, so that it never answers.
TEST(Store, AnAddressThatDoesNotAnswerHoldsUpNoOther) {
  const auto loopback = [] {
    return detail::HostLookup("127.0.0.1").ask(0, detail::deadline_after(kPatient)).addresses.at(0);
  };
  FileDescriptor silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  detail::Address nowhere = loopback();
  ASSERT_EQ(::bind(silent.get(), nowhere.data(), static_cast<socklen_t>(nowhere.size())), 0);
  ASSERT_EQ(::listen(silent.get(), 0), 0);
  nowhere = detail::address_of(silent);
  std::vector<FileDescriptor> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    static_cast<void>(
        ::connect(callers.back().get(), nowhere.data(), static_cast<socklen_t>(nowhere.size())));
  }
  const FileDescriptor listener = detail::listen_at(loopback());
  const detail::Address somewhere = detail::address_of(listener);
  const detail::Attempt attempt =
      connect_to_any({nowhere, somewhere, nowhere}, detail::deadline_after(kPatient));
  ASSERT_TRUE(attempt.socket.valid()) << attempt.why_not;
  EXPECT_EQ(detail::peer_address_of(attempt.socket).port(), somewhere.port());
}

TEST(Store, AnInterfaceThatIsNotThereIsNamed) {
  if (!detail::can_prove()) GTEST_SKIP() << "built without libsodium";
  const std::vector<int> codes = run_forked(1, [](const ForkedRank& me) {
    CommunicatorOptions options = within(kPatient);
    options.network.interface = "no-such-interface";
    return expect_error<UsageError>("'no-such-interface' (CommunicatorOptions::network",
                                    [&] { from_store("file://" + folder_of(me), 0, 1, options); });
  });
  EXPECT_EQ(codes, std::vector<int>{0});
}

TEST(Store, UcxCarriesEveryEdgeIfAsked) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  const FreePort port;
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);  // which address sanitizers do not endure
    CommunicatorOptions options = within(kPatient);
    options.carrier = CarrierChoice::ucx;
    Communicator comm = from_store(port.url(), me.rank, me.size, options);
    for (const Edge& edge : comm.topology().edges) {
      if (edge.carrier != Carrier::ucx) return 50;
    }
    Communicator second = comm.duplicate();
    for (Communicator* one : {&comm, &second}) {
      for (const Algorithm algorithm : {Algorithm::ring, Algorithm::naive}) {
        CollectiveCheck<float>(*one, 100003, ReduceOp::sum, algorithm).all();
      }
    }
    return ::testing::Test::HasFailure() ? 51 : 0;
  });
  EXPECT_EQ(codes, std::vector<int>(3, 0));
}

// Rank 1's part of a gather is over when rank 0, on another host, is killed while it waits for rank
// 2: rank 1's destructor, which waits for the end of the call, does not wait for its deadline.
TEST(Store, ADestructorSeesADeathOnAnotherHost) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  const FreePort port;
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);
    const std::string own_part_is_over = me.socket + ".over";
    const std::string destroyed = me.socket + ".destroyed";
    const auto wait_for = [](const std::string& path) {
      while (::access(path.c_str(), F_OK) != 0) std::this_thread::yield();
    };
    std::string told;
    set_log_hook([&](LogLevel, std::string_view text) { told += text; }, LogLevel::warning);
    CommunicatorOptions options = within(std::chrono::seconds(60));
    options.carrier = CarrierChoice::ucx;
    {
      Communicator comm = from_store(port.url(), me.rank, me.size, options);
      const std::vector<int> mine(10);
      std::vector<int> all(30);
      if (me.rank < 2) comm.gather(mine, all, 0);
      if (me.rank == 1) std::ofstream(own_part_is_over) << "yes";
      if (me.rank == 2) {
        wait_for(own_part_is_over);
        ::kill(comm.topology().places[0].process_id, SIGKILL);
        wait_for(destroyed);
      }
    }
    if (me.rank == 1) std::ofstream(destroyed) << "yes";
    if (me.rank == 2) {
      for (const std::string& file : {own_part_is_over, destroyed}) ::unlink(file.c_str());
    }
    set_log_hook({});
    if (me.rank == 2 || told.find("within the call's timeout") == std::string::npos) return 0;
    std::fprintf(stderr, "rank %d has logged: %s\n", me.rank, told.c_str());
    return 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{200, 0, 0}));
}

// UCX itself would warn of settings that its release does not know.
TEST(Store, JoiningByUcxWarnsOfNothing) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  const FreePort port;
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);
    std::string told;
    set_log_hook([&](LogLevel, std::string_view text) { told += text; }, LogLevel::warning);
    CommunicatorOptions options = within(kPatient);
    options.carrier = CarrierChoice::ucx;
    {
      Communicator comm = from_store(port.url(), me.rank, me.size, options);
      comm.barrier();
    }
    set_log_hook({});
    if (told.empty()) return 0;
    std::fprintf(stderr, "rank %d has logged: %s\n", me.rank, told.c_str());
    return 1;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Store, SeveralCommunicatorsAreAtWorkAtOnceByUcx) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  const FreePort port;
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);
    CommunicatorOptions options = within(kPatient);
    options.carrier = CarrierChoice::ucx;
    Communicator comm = from_store(port.url(), me.rank, me.size, options);
    std::vector<Communicator> several;
    for (int i = 0; i < 3; ++i) several.push_back(comm.duplicate());
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&several, i] {
        for (int call = 0; call < 100; ++call) {
          std::vector<int> values(static_cast<std::size_t>(1 + call * 100), i + call);
          several[static_cast<std::size_t>(i)].all_reduce(values);
          EXPECT_EQ(values, std::vector<int>(values.size(), 2 * (i + call)));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return ::testing::Test::HasFailure() ? 51 : 0;
  });
  EXPECT_EQ(codes, std::vector<int>(2, 0));
}

// All ranks that wait get an error that names the rank that was killed.
TEST(Store, AProcessThatIsKilledIsNamedByUcx) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  const FreePort port;
  const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);
    CommunicatorOptions options = within(kPatient);
    options.carrier = CarrierChoice::ucx;
    Communicator comm = from_store(port.url(), me.rank, me.size, options);
    std::vector<float> data(100000);
    comm.all_reduce(data);
    if (me.rank == 1) ::raise(SIGKILL);
    try {
      for (;;) comm.all_reduce(data);
    } catch (const PeerError& error) {
      return says(error, "rank 1 (process") && says(error, "ended") ? 0 : 1;
    }
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 200, 0}));
}

// Rank 2 is killed at any moment of its join, or soon after. Whenever that is, the others get an
// error that names it, and none crashes.
TEST(Store, ARankThatIsKilledWhileItJoinsByUcxIsNamed) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  for (int round = 0; round < 24; ++round) {
    const FreePort port;
    const std::vector<int> codes = run_forked(3, [&](const ForkedRank& me) {
      ::setenv("UCX_MEM_EVENTS", "no", 1);
      CommunicatorOptions options = within(std::chrono::seconds(5));
      options.carrier = CarrierChoice::ucx;
      std::optional<std::thread> killer;
      if (me.rank == 2) {
        killer.emplace([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(5 * round));
          ::kill(::getpid(), SIGKILL);
        });
      }
      try {
        Communicator comm = from_store(port.url(), me.rank, me.size, options);
        for (;;) comm.barrier();
      } catch (const Error& error) {
        const bool names = says(error, "rank 2") || says(error, "did not come: 2");
        if (killer) killer->join();
        return names ? 0 : 1;
      }
    });
    EXPECT_EQ(codes, (std::vector<int>{0, 0, 200})) << round;
  }
}

TEST(Store, ARankThatHasDestroyedItsCommunicatorIsNamedByUcx) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  const FreePort port;
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);
    CommunicatorOptions options = within(kPatient);
    options.carrier = CarrierChoice::ucx;
    std::optional<Communicator> comm = from_store(port.url(), me.rank, me.size, options);
    std::vector<float> data(100000, 1.0F);
    comm->all_reduce(data);
    if (me.rank == 1) {
      comm.reset();
      while (::access(me.socket.c_str(), F_OK) != 0) std::this_thread::yield();
      ::unlink(me.socket.c_str());
      return 0;
    }
    const int code = expect_error<PeerError>("rank 1 has destroyed its communicator",
                                             [&] { comm->all_reduce(data); });
    std::ofstream(me.socket) << "yes";
    return code;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0}));
}

TEST(Store, OneRankAloneNeedsNobody) {
  const FreePort port;
  EXPECT_EQ(join_and_add(port.url(), 0, 1, within(kPatient)), 0);
}

}  // namespace
}  // namespace rondo::test

// Which processes have ended, which hosts have vanished, and who is told. The sockets are local:
// that TCP gives up a silent host is tested between hosts (tests/hosts/ucx.sh).

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/host_links.hpp"
#include "net/host_watch.hpp"

namespace rondo::detail {
namespace {

struct Connection {
  FileDescriptor here;
  FileDescriptor there;  // what the other process has
};

Connection connect() {
  int both[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
  return {FileDescriptor(both[0]), FileDescriptor(both[1])};
}

using What = HostNotice::What;

void tell(const FileDescriptor& socket, ProcessName process, What what = What::vanished) {
  const HostNotice notice{what, process};
  EXPECT_EQ(::send(socket.get(), &notice, sizeof(notice), 0), static_cast<ssize_t>(sizeof(notice)));
}

// Of which process the next notice tells; 0 if the other side has closed the connection.
ProcessName receive(const FileDescriptor& socket, What what = What::vanished) {
  HostNotice notice;
  const ssize_t got = ::recv(socket.get(), &notice, sizeof(notice), MSG_WAITALL);
  EXPECT_TRUE(got == 0 || got == static_cast<ssize_t>(sizeof(notice))) << got;
  if (got == 0) return 0;
  EXPECT_EQ(notice.what, what);
  return notice.process;
}

std::vector<ProcessName> gone_from(HostLinks& links) {
  std::vector<ProcessName> gone;
  for (const GoneProcess& one : links.gone()) gone.push_back(one.process);
  return gone;
}

std::vector<int> gone_from(const HostWatch& watch) {
  std::vector<int> gone;
  for (const HostWatch::Gone& one : watch.gone()) gone.push_back(one.member);
  return gone;
}

TEST(HostLinks, PassesOnOnceWhichHostHasVanished) {
  HostLinks links;
  Connection a = connect();
  Connection b = connect();
  const auto to_a = links.add(1, std::move(a.here));
  const auto to_b = links.add(2, std::move(b.here));
  tell(a.there, 77);
  EXPECT_EQ(receive(b.there), 77U);
  EXPECT_EQ(gone_from(links), std::vector<ProcessName>{77});
  EXPECT_TRUE(links.gone()[0].host_vanished);
  tell(b.there, 77);  // which is known already
  tell(b.there, 78);
  EXPECT_EQ(receive(a.there), 77U);
  EXPECT_EQ(receive(a.there), 78U);
}

TEST(HostLinks, HearsANoticeThatComesInPieces) {
  HostLinks links;
  Connection a = connect();
  Connection b = connect();
  const auto to_a = links.add(1, std::move(a.here));
  const auto to_b = links.add(2, std::move(b.here));
  const HostNotice notice{What::vanished, 0x0102030405060708};
  const auto* bytes = reinterpret_cast<const char*>(&notice);
  for (std::size_t i = 0; i < sizeof(notice); ++i) {
    EXPECT_EQ(::send(a.there.get(), bytes + i, 1, 0), 1);
  }
  EXPECT_EQ(receive(b.there), notice.process);
}

TEST(HostLinks, AConnectionThatIsClosedWithoutAWordIsThatOfAProcessThatHasEnded) {
  HostLinks links;
  Connection a = connect();
  Connection b = connect();
  const auto to_a = links.add(1, std::move(a.here));
  const auto to_b = links.add(2, std::move(b.here));
  EXPECT_EQ(links.find(1), to_a);
  a.there = FileDescriptor();
  EXPECT_EQ(receive(b.there, What::ended), 1U);
  EXPECT_EQ(links.find(1), nullptr);
  ASSERT_EQ(gone_from(links), std::vector<ProcessName>{1});
  EXPECT_FALSE(links.gone()[0].host_vanished);
  EXPECT_EQ(links.find(2), to_b);
}

// What has the socket's number now is the program's.
TEST(HostLinks, ADescriptorThatTheProgramHasClosedIsLeftAlone) {
  HostLinks links;
  Connection a = connect();
  Connection b = connect();
  Connection program = connect();
  const int number = a.here.get();
  auto to_a = links.add(1, std::move(a.here));
  const auto to_b = links.add(2, std::move(b.here));
  ASSERT_EQ(::dup2(program.here.get(), number), number);
  EXPECT_EQ(::send(program.there.get(), "mine", 4, 0), 4);
  links.wake();
  tell(b.there, 77);
  while (links.gone().empty()) std::this_thread::yield();
  EXPECT_EQ(gone_from(links), std::vector<ProcessName>{77});
  to_a.reset();
  char got[5] = {};
  EXPECT_EQ(::recv(number, got, 4, 0), 4);
  EXPECT_STREQ(got, "mine");
  EXPECT_EQ(::recv(program.there.get(), got, 1, MSG_DONTWAIT), -1);  // nothing was said there
  ::close(number);
}

TEST(HostLinks, AProcessThatLeavesSaysSo) {
  HostLinks links;
  Connection a = connect();
  Connection b = connect();
  auto to_a = links.add(1, std::move(a.here));
  const auto to_b = links.add(2, std::move(b.here));
  tell(b.there, 2, What::leaves);
  b.there = FileDescriptor();
  while (links.find(2) != nullptr) std::this_thread::yield();
  EXPECT_TRUE(links.gone().empty());
  to_a.reset();
  links.wake();
  EXPECT_EQ(receive(a.there, What::leaves), name_of_this_process());
  EXPECT_EQ(receive(a.there), 0U);
}

// A process that is killed while its child lives on.
TEST(HostLinks, AForkedChildHidesNoDeath) {
  Connection a = connect();
  Connection child_ends = connect();
  const pid_t process = ::fork();
  if (process == 0) {
    a.here = FileDescriptor();
    HostLinks links;
    const auto to_a = links.add(1, std::move(a.there));
    if (::fork() == 0) {
      child_ends.here = FileDescriptor();
      receive(child_ends.there);  // until the test ends
      ::_exit(0);
    }
    ::_exit(0);
  }
  a.there = FileDescriptor();
  child_ends.there = FileDescriptor();
  HostLinks links;
  const auto link = links.add(5, std::move(a.here));
  while (links.gone().empty()) std::this_thread::yield();
  EXPECT_EQ(gone_from(links), std::vector<ProcessName>{5});
  ::waitpid(process, nullptr, 0);
}

TEST(HostWatch, NamesMembersInTheOrderOfTheirEnds) {
  HostWatch watch({5, 77, 6, 77, 8});
  Connection a = connect();
  watch.add_link(0, std::move(a.here));
  EXPECT_TRUE(watch.gone().empty());
  tell(a.there, 8, What::ended);
  tell(a.there, 99);  // of another communicator
  tell(a.there, 77);
  while (watch.gone().size() < 3) std::this_thread::yield();
  EXPECT_EQ(gone_from(watch), (std::vector<int>{4, 1, 3}));
}

TEST(HostWatch, CommunicatorsShareALink) {
  Connection a = connect();
  {
    HostWatch second({5, 9, 8});
    {
      HostWatch first({5, 8});
      EXPECT_FALSE(first.find_link(1));
      first.add_link(1, std::move(a.here));
      EXPECT_FALSE(second.find_link(1));
      EXPECT_TRUE(second.find_link(2));
    }
    tell(a.there, 9);  // the link outlives the first of them
    while (second.gone().empty()) std::this_thread::yield();
    EXPECT_EQ(gone_from(second), std::vector<int>{1});
  }
  EXPECT_EQ(receive(a.there), 9U);  // all are told, also who told it
  EXPECT_EQ(receive(a.there, What::leaves), name_of_this_process());
  EXPECT_EQ(receive(a.there), 0U);  // the link ends with the last communicator
}

TEST(HostLinks, AForkedChildHasANameOfItsOwn) {
  const ProcessName mine = name_of_this_process();
  EXPECT_EQ(name_of_this_process(), mine);
  Connection pipe = connect();
  const pid_t child = ::fork();
  if (child == 0) {
    const ProcessName name = name_of_this_process();
    ::_exit(::send(pipe.there.get(), &name, sizeof(name), 0) == sizeof(name) ? 0 : 1);
  }
  ProcessName theirs = 0;
  EXPECT_EQ(::recv(pipe.here.get(), &theirs, sizeof(theirs), MSG_WAITALL),
            static_cast<ssize_t>(sizeof(theirs)));
  EXPECT_NE(theirs, mine);
  EXPECT_NE(theirs, 0U);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace rondo::detail

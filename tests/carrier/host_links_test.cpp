// Which hosts have vanished, and who is told. The sockets are local: that TCP gives up a silent host is tested between
// hosts (tests/hosts/ucx.sh).

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "carrier/host_links.hpp"
#include "carrier/host_watch.hpp"

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

void tell(const FileDescriptor& socket, ProcessName name) {
  EXPECT_EQ(::send(socket.get(), &name, sizeof(name), 0), static_cast<ssize_t>(sizeof(name)));
}

// What arrives next; 0 if the other side has closed the connection.
ProcessName hear(const FileDescriptor& socket) {
  ProcessName name = 0;
  const ssize_t got = ::recv(socket.get(), &name, sizeof(name), MSG_WAITALL);
  EXPECT_TRUE(got == 0 || got == static_cast<ssize_t>(sizeof(name))) << got;
  return name;
}

TEST(HostLinks, PassesOnOnceWhichHostHasVanished) {
  HostLinks links;
  Connection a = connect();
  Connection b = connect();
  const auto to_a = links.add(1, std::move(a.here));
  const auto to_b = links.add(2, std::move(b.here));
  tell(a.there, 77);
  EXPECT_EQ(hear(b.there), 77U);
  EXPECT_EQ(links.vanished(), std::set<ProcessName>{77});
  tell(b.there, 77);  // which is known already
  tell(b.there, 78);
  EXPECT_EQ(hear(a.there), 77U);
  EXPECT_EQ(hear(a.there), 78U);
}

TEST(HostLinks, HearsANameThatComesInPieces) {
  HostLinks links;
  Connection a = connect();
  Connection b = connect();
  const auto to_a = links.add(1, std::move(a.here));
  const auto to_b = links.add(2, std::move(b.here));
  const ProcessName name = 0x0102030405060708;
  const auto* bytes = reinterpret_cast<const char*>(&name);
  for (std::size_t i = 0; i < sizeof(name); ++i) {
    EXPECT_EQ(::send(a.there.get(), bytes + i, 1, 0), 1);
  }
  EXPECT_EQ(hear(b.there), name);
}

TEST(HostLinks, AConnectionThatIsClosedTellsOfNoVanishedHost) {
  HostLinks links;
  Connection a = connect();
  Connection b = connect();
  const auto to_a = links.add(1, std::move(a.here));
  const auto to_b = links.add(2, std::move(b.here));
  EXPECT_EQ(links.find(1), to_a);
  a.there = FileDescriptor();
  while (links.find(1) != nullptr) std::this_thread::yield();
  EXPECT_TRUE(links.vanished().empty());
  EXPECT_EQ(links.find(2), to_b);
}

TEST(HostWatch, NamesMembers) {
  HostWatch watch({5, 77, 6, 77});
  Connection a = connect();
  watch.add_link(0, std::move(a.here));
  EXPECT_TRUE(watch.vanished().empty());
  tell(a.there, 99);  // of another communicator
  tell(a.there, 77);
  while (watch.vanished().empty()) std::this_thread::yield();
  EXPECT_EQ(watch.vanished(), (std::vector<int>{1, 3}));
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
    while (second.vanished().empty()) std::this_thread::yield();
    EXPECT_EQ(second.vanished(), std::vector<int>{1});
  }
  EXPECT_EQ(hear(a.there), 9U);  // all are told, also who told it
  EXPECT_EQ(hear(a.there), 0U);  // the link ends with the last communicator
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
  const ProcessName theirs = hear(pipe.here);
  EXPECT_NE(theirs, mine);
  EXPECT_NE(theirs, 0U);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace rondo::detail

// Handing an open file to whoever asks for it by name.

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "bootstrap/local_socket.hpp"

namespace rondo::detail {
namespace {

Clock::time_point soon() { return deadline_after(std::chrono::seconds(20)); }

FileDescriptor file_with(const std::string& text) {
  FileDescriptor file(::memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(::pwrite(file.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return file;
}

std::string text_in(const FileDescriptor& file) {
  std::array<char, 64> text{};
  const ssize_t bytes = ::pread(file.get(), text.data(), text.size(), 0);
  return {text.data(), bytes < 0 ? 0 : static_cast<std::size_t>(bytes)};
}

TEST(FileOffer, EachNameStandsForItsOwnFile) {
  const FileDescriptor one = file_with("one");
  const FileDescriptor two = file_with("two");
  const FileOffer offers_one(one);
  const FileOffer offers_two(two);
  const FileDescriptor asked_one = ask_for_file(offers_one.name(), soon());
  const FileDescriptor asked_two = ask_for_file(offers_two.name(), soon());
  offers_two.give(1, soon());
  offers_one.give(1, soon());
  EXPECT_EQ(text_in(receive_file(asked_one, soon())), "one");
  EXPECT_EQ(text_in(receive_file(asked_two, soon())), "two");
  EXPECT_THROW(ask_for_file("rondo-no-such-name", soon()), TransportError);
}

// Whether a process of another user gets nothing at this name, by the ordinary way and without what
// the asking side checks.
bool refuses_another_user(const std::string& name) {
  if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) return false;
  bool asked = true;
  try {
    static_cast<void>(ask_for_file(name, soon()));
  } catch (const TransportError&) {
    asked = false;
  }
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return false;
  }
  char any = 0;
  return !asked && ::read(socket.get(), &any, 1) <= 0;  // the other side has closed it
}

TEST(FileOffer, IsNotForAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, which can become another user";
  const FileDescriptor file = file_with("secret");
  const FileOffer offer(file);
  const pid_t other_user = ::fork();
  if (other_user == 0) ::_exit(refuses_another_user(offer.name()) ? 0 : 1);
  // Asks when the other user is through, or waits for an answer, which it gets from give().
  std::thread gives([&] { offer.give(1, soon()); });
  int status = -1;
  ASSERT_EQ(::waitpid(other_user, &status, 0), other_user);
  EXPECT_EQ(status, 0);
  const FileDescriptor asked = ask_for_file(offer.name(), soon());
  gives.join();
  EXPECT_EQ(text_in(receive_file(asked, soon())), "secret");
}

TEST(FileOffer, AReceiverWithoutADescriptorLeftIsToldTheCure) {
  const FileDescriptor file = file_with("text");
  const FileOffer offer(file);
  const FileDescriptor asked = ask_for_file(offer.name(), soon());
  offer.give(1, soon());
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const int next = ::dup(asked.get());
  ::close(next);
  const rlimit full{static_cast<rlim_t>(next), usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  std::exception_ptr failure;
  try {
    receive_file(asked, soon());
  } catch (...) {
    failure = std::current_exception();
  }
  // Before the error is looked at, for which a sanitizer may need a descriptor.
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  std::string text;
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const TransportError& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("got no shared memory"), std::string::npos) << text;
  EXPECT_NE(text.find("ulimit -n"), std::string::npos) << text;
}

}  // namespace
}  // namespace rondo::detail

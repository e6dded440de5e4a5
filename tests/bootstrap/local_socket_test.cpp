// Handing an open file to whoever asks for it by name.

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <exception>
#include <string>

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

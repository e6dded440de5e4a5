// A port at which ranks can meet.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/addresses.hpp"

namespace rondo::test {

// A port of the loopback interface that no other program gets, since this one holds it; ranks may
// listen at it even so.
class FreePort {
 public:
  explicit FreePort(int family = AF_INET) : held_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(held_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    const detail::Address address = detail::HostLookup(family == AF_INET ? "127.0.0.1" : "::1")
                                        .ask(0, detail::deadline_after(std::chrono::minutes(5)))
                                        .addresses.at(0);
    usable_ = ::bind(held_.get(), address.data(), static_cast<socklen_t>(address.size())) == 0;
    number_ = detail::address_of(held_).port();
  }
  [[nodiscard]] bool usable() const { return usable_; }
  [[nodiscard]] std::string number() const { return std::to_string(number_); }
  [[nodiscard]] std::uint16_t value() const { return static_cast<std::uint16_t>(number_); }
  [[nodiscard]] std::vector<detail::Address> addresses() const {
    return detail::HostLookup("127.0.0.1")
        .ask(value(), detail::deadline_after(std::chrono::minutes(5)))
        .addresses;
  }
  [[nodiscard]] std::string url() const { return "tcp://127.0.0.1:" + number(); }

 private:
  detail::FileDescriptor held_;
  bool usable_ = false;
  int number_ = 0;
};

}  // namespace rondo::test

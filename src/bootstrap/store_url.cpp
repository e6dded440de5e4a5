#include "bootstrap/store_url.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {
namespace {

[[noreturn]] void refuse(const std::string& text, const char* what) {
  throw UsageError(
      fmt::format("from_store: '{}' {}; it must be like file:///a/folder, unix:///a/socket, "
                  "tcp://host:29500 or "
                  "tcp://[::1]:29500",
                  text, what));
}

std::uint16_t parse_port(const std::string& text, std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc{} || end != digits.data() + digits.size() || port == 0) {
    refuse(text, "does not end with a port from 1 to 65535");
  }
  return port;
}

// Names of hosts have only some letters, and what looks like a number must be one: else a mistake
// is found only when the name has been looked for until the deadline.
void require_host(const std::string& text, std::string_view host, bool in_brackets) {
  if (in_brackets) {
    const std::string number(host.substr(0, host.find('%')));
    in6_addr six{};
    if (::inet_pton(AF_INET6, number.c_str(), &six) != 1) {
      refuse(text, "has no IPv6 address between the brackets");
    }
    return;
  }
  constexpr std::string_view kDigitsAndDots = "0123456789.";
  in_addr four{};
  if (host.find_first_not_of(kDigitsAndDots) == std::string_view::npos &&
      ::inet_pton(AF_INET, std::string(host).c_str(), &four) != 1) {
    refuse(text, "has a host of digits and dots that is no IPv4 address");
  }
  const bool plain = std::all_of(host.begin(), host.end(), [](char letter) {
    const auto code = static_cast<unsigned char>(letter);
    return std::isalnum(code) != 0 || code >= 128 || letter == '-' || letter == '.' ||
           letter == '_';
  });
  if (!plain) refuse(text, "has a character that names of hosts do not have");
}

}  // namespace

std::variant<FileUrl, UnixUrl, TcpUrl> parse_store_url(const std::string& text) {
  constexpr std::string_view kFile = "file://";
  constexpr std::string_view kUnix = "unix://";
  constexpr std::string_view kTcp = "tcp://";
  if (text.find('\0') != std::string::npos) refuse("a text", "has a zero byte");
  std::string_view rest = text;
  for (const std::string_view scheme : {kFile, kUnix}) {
    if (!rest.starts_with(scheme)) continue;
    rest.remove_prefix(scheme.size());
    if (!rest.starts_with('/')) refuse(text, "names no absolute path");
    if (scheme == kFile) return FileUrl{std::string(rest)};
    return UnixUrl{std::string(rest)};
  }
  if (!rest.starts_with(kTcp)) refuse(text, "begins with none of file://, unix:// and tcp://");
  rest.remove_prefix(kTcp.size());
  std::string_view host;
  const bool in_brackets = rest.starts_with('[');
  if (in_brackets) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) refuse(text, "has a '[' without a ']'");
    host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (!rest.starts_with(':')) refuse(text, "has no port");
  } else {
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos) refuse(text, "has no port");
    host = rest.substr(0, colon);
    rest.remove_prefix(colon);
    if (rest.find(':', 1) != std::string_view::npos) {
      refuse(text, "has several colons: an IPv6 address needs brackets");
    }
  }
  rest.remove_prefix(1);
  if (host.empty() || host.find('/') != std::string_view::npos) refuse(text, "names no host");
  require_host(text, host, in_brackets);
  return TcpUrl{std::string(host), parse_port(text, rest)};
}

}  // namespace rondo::detail

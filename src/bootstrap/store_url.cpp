#include "bootstrap/store_url.hpp"

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
  if (rest.starts_with('[')) {
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
  return TcpUrl{std::string(host), parse_port(text, rest)};
}

}  // namespace rondo::detail

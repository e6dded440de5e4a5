// The addresses that from_store() takes.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace rondo::detail {

struct FileUrl {
  std::string folder;
};
struct UnixUrl {
  std::string path;
};
struct TcpUrl {
  std::string host;  // an IPv6 address without its brackets
  std::uint16_t port = 0;
};

// Throws UsageError that says what is wrong with the text and what it should look like.
std::variant<FileUrl, UnixUrl, TcpUrl> parse_store_url(const std::string& text);

}  // namespace rondo::detail

#include "joining.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include <rondo/options.hpp>
#include <rondo/start.hpp>

#include "adapters/random_hex.hpp"

namespace rondo::torch_backend {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// Equal for processes that can meet at a Unix socket, as far as that can be told beforehand.
std::string place() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::string same = host_name() + " " + boot + " " + std::to_string(::getuid());
  for (const char* const space : {"/proc/self/ns/net", "/proc/self/ns/mnt"}) {
    std::array<char, 64> name{};
    const ssize_t length = ::readlink(space, name.data(), name.size() - 1);
    same += " " + std::string(name.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  }
  return same;
}

// A port that was free just now.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      socket >= 0 && ::bind(socket, any, length) == 0 && ::getsockname(socket, any, &length) == 0;
  if (socket >= 0) ::close(socket);
  if (!found) throw std::runtime_error("rondo_torch: no port is free");
  return ntohs(address.sin_port);
}

std::string text_of(c10d::Store& store, const std::string& key, std::chrono::milliseconds timeout) {
  store.wait({key}, timeout);
  const auto bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}
void tell(c10d::Store& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
}

// Where the ranks meet, as rank 0 chooses it.
std::string meeting_point(c10d::Store& store, int size, std::chrono::milliseconds timeout) {
  const std::string mine = place();
  bool one_host = true;
  for (int rank = 1; rank < size; ++rank) {
    one_host = text_of(store, "place of " + std::to_string(rank), timeout) == mine && one_host;
  }
  if (one_host) {
    return "unix:///tmp/rondo-torch-" + adapters::random_hex();
  }
  return "tcp://" + host_name() + ":" + std::to_string(free_port());
}

}  // namespace

Communicator join(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                  std::chrono::milliseconds timeout) {
  CommunicatorOptions options;
  options.timeout = timeout;
  if (size == 1) return std::move(local_group(1, options).front());
  std::string url;
  std::string secret;
  if (rank == 0) {
    url = meeting_point(*store, size, timeout);
    secret = adapters::random_hex();
    tell(*store, "secret", secret);
    tell(*store, "url", url);
  } else {
    tell(*store, "place of " + std::to_string(rank), place());
    url = text_of(*store, "url", timeout);
    secret = text_of(*store, "secret", timeout);
  }
  // The user's own secret is safer than one that went through torch's store.
  const char* const own = std::getenv("RONDO_SECRET");
  const bool has_own = own != nullptr && *own != '\0';
  if (url.starts_with("tcp:") && !has_own) options.network.secret = secret;
  return from_store(url, rank, size, options);
}

}  // namespace rondo::torch_backend

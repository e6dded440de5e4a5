// Messages by UCX.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/messenger.hpp"

namespace rondo::detail {

// What makes messengers by UCX: this process's worker, and the addresses of those of all ranks.
class UcxNetwork {
 public:
  virtual ~UcxNetwork() = default;
  // How other processes reach this one, as long as this object lives.
  [[nodiscard]] virtual const std::string& address() const = 0;
  // Between ranks with these addresses, by rank. `session`: the group's, which no other group has.
  [[nodiscard]] virtual std::unique_ptr<Messenger> messenger(int rank,
                                                             std::vector<std::string> addresses,
                                                             std::uint64_t session) const = 0;
};

// `interface`: the network interface to use; empty: any. Throws TransportError.
std::unique_ptr<UcxNetwork> open_ucx(const std::string& interface);
// Whether Rondo was built with UCX; else open_ucx() throws TransportError.
bool has_ucx();

}  // namespace rondo::detail

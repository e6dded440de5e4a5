#include "joining/by_ucx.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/random_number.hpp"
#include "bootstrap/addresses.hpp"
#include "bootstrap/together.hpp"
#include "net/link_probe.hpp"
#include "net/pump.hpp"
#include "net/ucx_messenger.hpp"

namespace rondo::detail {
namespace {

// What UCX may use where ranks have met by these network interfaces: these, since others may be up
// and lead nowhere (a bridge for containers has the same name and address on every host), and
// InfiniBand, whose devices have names of their own.
std::string devices_beside(const std::string& interfaces) {
  if (interfaces.empty()) return {};
  std::string devices = interfaces;
  std::error_code none;
  for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", none)) {
    for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", none)) {
      devices +=
          fmt::format(",{}:{}", device.path().filename().string(), port.path().filename().string());
    }
  }
  return devices;
}

// Opened by all ranks together, then used to measure links and by the pump.
struct Opened {
  std::string interface;  // that the user has named
  std::string devices;    // that UCX may use; empty: all
  std::chrono::milliseconds timeout{};
  std::unique_ptr<UcxNetwork> network;
  std::unique_ptr<Messenger> messenger;

  void open(Bootstrap& bootstrap) {
    together(bootstrap, [&] {
      // UCX takes a name that it does not know for one without addresses. A name of its own kind
      // has a port.
      if (!interface.empty() && interface.find(':') == std::string::npos) {
        static_cast<void>(own_addresses(interface, 0));
      }
      network = open_ucx(devices);
    });
    std::vector<std::string> addresses = exchange_addresses(bootstrap);
    const std::uint64_t session = bootstrap.exchange(random_number())[0];
    messenger = network->messenger(bootstrap.rank(), std::move(addresses), session);
    // This rank waits for less time than other ranks wait for it, so that it can report to them
    // which rank it cannot reach.
    messenger->set_patience(timeout / 4 * 3);
  }

  // Addresses have different lengths.
  [[nodiscard]] std::vector<std::string> exchange_addresses(Bootstrap& bootstrap) const {
    const std::string& mine = network->address();
    const std::vector<std::uint64_t> lengths =
        bootstrap.exchange(static_cast<std::uint64_t>(mine.size()));
    std::vector<char> row(mine.begin(), mine.end());
    row.resize(*std::max_element(lengths.begin(), lengths.end()));
    std::vector<std::string> addresses;
    for (const std::vector<char>& one : bootstrap.exchange_rows(row)) {
      addresses.emplace_back(one.begin(),
                             one.begin() + static_cast<std::ptrdiff_t>(lengths[addresses.size()]));
    }
    return addresses;
  }
};

}  // namespace

NetworkOptions with_environment(NetworkOptions network) {
  if (!network.secret) network.secret = environment_secret();
  if (!network.interface) network.interface = environment_interface();
  return network;
}

NetworkCarrier by_ucx(const NetworkOptions& options, const std::string& met_by,
                      std::chrono::milliseconds timeout) {
  const auto opened = std::make_shared<Opened>();
  opened->interface = options.interface.value_or("");
  opened->devices = options.interface ? *options.interface : devices_beside(met_by);
  opened->timeout = timeout;
  NetworkCarrier network;
  network.carrier = Carrier::ucx;
  network.open = [opened](Bootstrap& bootstrap) { opened->open(bootstrap); };
  // After a failure messages may still be on their way.
  const auto with_messenger = [opened](const auto& use) {
    try {
      return use(*opened->messenger);
    } catch (...) {
      static_cast<void>(opened->messenger.release());
      throw;
    }
  };
  network.greet = [with_messenger](int next, int prev) {
    with_messenger([&](Messenger& messenger) { greet(messenger, next, prev); });
  };
  network.probe = [with_messenger](int next, int prev) {
    return with_messenger([&](Messenger& messenger) { return probe_links(messenger, next, prev); });
  };
  network.make_pump = [opened](PumpEdges edges) -> std::unique_ptr<Pump> {
    return std::make_unique<Pump>(std::move(opened->messenger), std::move(edges));
  };
  return network;
}

}  // namespace rondo::detail

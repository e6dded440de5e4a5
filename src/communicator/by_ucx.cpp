#include "communicator/by_ucx.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "bootstrap/together.hpp"
#include "carrier/message_pump.hpp"
#include "carrier/ucx_messenger.hpp"
#include "joining/probe_links.hpp"

namespace rondo::detail {
namespace {

// Opened by all ranks together, then used to measure links and by the pump.
struct Opened {
  std::string interface;
  std::chrono::milliseconds timeout{};
  std::unique_ptr<UcxNetwork> network;
  std::unique_ptr<Messenger> messenger;

  void open(Bootstrap& bootstrap) {
    together(bootstrap, [&] { network = open_ucx(interface); });
    std::vector<std::string> addresses = exchange_addresses(bootstrap);
    std::random_device random;
    const std::uint64_t mine = (std::uint64_t{random()} << 32U) | random();
    const std::uint64_t session = bootstrap.exchange(mine)[0];
    messenger = network->messenger(bootstrap.rank(), std::move(addresses), session);
    messenger->set_patience(timeout);
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

Network by_ucx(const NetworkOptions& options, std::chrono::milliseconds timeout) {
  const auto opened = std::make_shared<Opened>();
  opened->interface = options.interface.value_or("");
  opened->timeout = timeout;
  Network network;
  network.carrier = Carrier::ucx;
  network.open = [opened](Bootstrap& bootstrap) { opened->open(bootstrap); };
  network.probe = [opened](int next, int prev) {
    try {
      return probe_links(*opened->messenger, next, prev);
    } catch (...) {
      static_cast<void>(opened->messenger.release());  // messages may still be on their way
      throw;
    }
  };
  network.make_pump = [opened](PumpEdges edges) -> std::unique_ptr<Pump> {
    return std::make_unique<MessagePump>(std::move(opened->messenger), std::move(edges));
  };
  return network;
}

}  // namespace rondo::detail

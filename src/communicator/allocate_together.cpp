#include "communicator/allocate_together.hpp"

#include "bootstrap/together.hpp"
#include "communicator/communicator_bootstrap.hpp"

namespace rondo::detail {

RegisteredMemory<std::uint8_t> allocate_together(Communicator& communicator, std::size_t bytes) {
  CommunicatorBootstrap bootstrap(communicator, PartOf::allocate);
  RegisteredMemory<std::uint8_t> memory;
  together(bootstrap, [&] { memory = RegisteredMemory<std::uint8_t>(bytes); });
  return memory;
}

}  // namespace rondo::detail
